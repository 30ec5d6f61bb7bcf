"""Streams of server-sent events: of changes only, bounded, and ended with the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from msgspec import Struct
from starlette.responses import Response, StreamingResponse
from starlette.types import Message

from barnabas.broker.http import streams
from barnabas.broker.http.problem import Problem
from barnabas.broker.http.streams import Streams
from barnabas.protocol.errors import ApiError, ErrorCode


class Number(Struct):
    """A state."""

    value: int


class Looks:
    """Gives one state after the other, and raises the errors among them. At the last it calls `at_end`."""

    def __init__(self, states: Sequence[int | Exception], closed: Streams) -> None:
        self._states = list(states)
        self._closed = closed

    async def look(self) -> Number:
        state = self._states.pop(0)
        if not self._states:
            self._closed.close()
        if isinstance(state, Exception):
            raise state
        return Number(state)


async def events(served: Streams, *states: int | Exception) -> list[str]:
    response = await served.begin(Looks(states, served).look, 0.001)
    assert isinstance(response, StreamingResponse)
    return [text async for text in _texts(response)]


async def _texts(response: StreamingResponse) -> AsyncIterator[str]:
    async for part in response.body_iterator:
        assert isinstance(part, bytes)
        yield part.decode()


def state(value: int) -> str:
    return f'event: state\ndata: {{"value":{value}}}\n\n'


async def test_only_changes_are_sent() -> None:
    assert await events(Streams(), 1, 1, 1, 2, 2, 1, 1) == [state(1), state(2), state(1)]


async def test_a_silent_stream_has_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "SILENCE_SECONDS", 0.002)
    found = await events(Streams(), 1, 1, 1, 1, 1, 1)
    assert found[0] == state(1)
    assert set(found[1:]) == {": nothing has changed\n\n"}


async def test_an_error_is_the_last_event() -> None:
    gone = ApiError(ErrorCode.group_id_not_found, "There is no group g.")
    first, last = await events(Streams(), 1, gone, 2)
    assert first == state(1)
    assert last.startswith("event: problem\ndata: {")
    assert '"kafka_error":"GROUP_ID_NOT_FOUND"' in last


async def test_an_error_of_the_first_look_is_an_ordinary_one() -> None:
    with pytest.raises(ApiError):
        await events(Streams(), ApiError(ErrorCode.group_id_not_found), 1)


class Client:
    """A client that reads a stream until it leaves."""

    def __init__(self, response: Response) -> None:
        self.received: asyncio.Queue[bytes] = asyncio.Queue()
        self._left = asyncio.Event()
        self.served = asyncio.ensure_future(response({"type": "http"}, self._receive, self._send))

    async def _receive(self) -> Message:
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.body":
            self.received.put_nowait(message["body"])

    async def leave(self) -> None:
        self._left.set()
        await self.served


def numbers() -> Looks:
    return Looks(range(1_000), Streams())


async def test_their_number_is_bounded_and_an_ended_one_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "STREAMS_MAX", 1)
    served = Streams()
    client = Client(await served.begin(numbers().look, 0.001))
    assert await client.received.get() == state(0).encode()
    with pytest.raises(Problem) as refused:
        await served.begin(numbers().look, 0.001)
    assert refused.value.details.status == 503
    await client.leave()
    await Client(await served.begin(numbers().look, 0.001)).leave()


async def test_a_client_that_leaves_before_the_first_event_makes_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "STREAMS_MAX", 1)
    served = Streams()
    for _ in range(3):
        client = Client(await served.begin(numbers().look, 0.001))
        await client.leave()


async def test_streams_whose_first_look_waits_count_already(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "STREAMS_MAX", 1)
    served, opened = Streams(), asyncio.Event()

    async def look() -> Number:
        await opened.wait()
        raise ApiError(ErrorCode.group_id_not_found)

    first = asyncio.ensure_future(served.begin(look, 0.001))
    await asyncio.sleep(0)
    with pytest.raises(Problem):
        await served.begin(numbers().look, 0.001)
    opened.set()
    with pytest.raises(ApiError):
        await first
    assert await served.begin(numbers().look, 0.001), "the failed one has made room"


async def test_a_closed_server_begins_no_stream() -> None:
    served = Streams()
    served.close()
    with pytest.raises(Problem):
        await served.begin(Looks([1], served).look, 0.001)
