"""Connections of a client above its quotas: the request is answered at once, and the connection is not read
for the throttle time (KIP-219).
"""

import asyncio
from collections.abc import Callable, Hashable
from typing import Any

import pytest

from barnabas.broker.config.listener import Listener
from barnabas.broker.network.connection import Connection, ConnectionLimits
from barnabas.broker.network.dispatch import Answer, Dispatcher
from barnabas.broker.network.handler import NO_RESPONSE, Response
from barnabas.broker.network.request_budget import RequestBudget
from barnabas.runtime.metrics import Metrics
from barnabas.runtime.response_budget import EncodedBody
from tests.broker.network.edge_fakes import (
    PLAIN_API,
    WAITING_API,
    FakeTransport,
    ManualClock,
    request_frame,
    settle,
)
from tests.simulation.virtual_loop import Deadlock, VirtualLoop, in_virtual_time, run_to_end

pytestmark = pytest.mark.interpreted

LISTENER = Listener("PLAINTEXT", "127.0.0.1", 9092, "localhost", 9092)
SHORT_MS = 30
LONG_MS = 100_000


class ThrottlingDispatcher(Dispatcher):
    """Gives every answer the throttle time from the test."""

    throttle_ms = 0

    def start(self, connection: Any, frame: Any) -> Any:
        answer = super().start(connection, frame)
        return answer._replace(throttle_ms=self.throttle_ms) if isinstance(answer, Answer) else answer

    def answer(self, pending: Any, response: Response) -> Any:
        return super().answer(pending, response)._replace(throttle_ms=self.throttle_ms)


class Owner:
    """The server, with room for every connection."""

    def __init__(self) -> None:
        self.request_budget = RequestBudget(None)

    def connection_opened(self, connection: Connection) -> bool:
        return True

    def connection_closed(self, connection: Connection, unfinished: list[asyncio.Future[Any]]) -> None:
        pass

    def note(self, write: Callable[..., None], event: str, key: Hashable, **details: object) -> None:
        write(event, **details)

    def give_back(self, reserved_bytes: int) -> None:
        pass


class Bench:
    """A connection, its transport, and the replies that wait."""

    def __init__(self, respond: Callable[[], Response] = lambda: EncodedBody([b"x"])) -> None:
        self.started_count = 0
        self.waits: list[asyncio.Future[Any]] = []
        self._respond = respond
        handlers = {PLAIN_API: self._plain, WAITING_API: self._waiting}
        self.dispatcher = ThrottlingDispatcher(handlers, Metrics(), ManualClock())
        self.connection = Connection(7, LISTENER, self.dispatcher, Owner(), ConnectionLimits())
        self.transport = FakeTransport()
        self.connection.connection_made(self.transport)

    def receive(self, *api_keys: int) -> None:
        data = b"".join(request_frame(api_key, number) for number, api_key in enumerate(api_keys))
        buffer = self.connection.get_buffer(-1)
        buffer[: len(data)] = data
        del buffer
        self.connection.buffer_updated(len(data))

    def _plain(self, *_: object) -> Response:
        self.started_count += 1
        return self._respond()

    def _waiting(self, *_: object) -> asyncio.Future[Any]:
        self.started_count += 1
        self.waits.append(asyncio.get_running_loop().create_future())
        return self.waits[-1]


@in_virtual_time
async def test_the_answer_goes_out_and_the_next_request_waits() -> None:
    bench = Bench()
    bench.dispatcher.throttle_ms = SHORT_MS
    bench.receive(PLAIN_API, PLAIN_API)
    assert (bench.started_count, len(bench.transport.answers())) == (1, 1)
    assert not bench.transport.is_reading()
    bench.dispatcher.throttle_ms = 0
    await asyncio.sleep((SHORT_MS - 1) / 1000)
    assert bench.started_count == 1
    await asyncio.sleep(1 / 1000)
    assert (bench.started_count, len(bench.transport.answers())) == (2, 2)
    assert bench.transport.is_reading()


async def test_the_next_request_waits_after_a_late_answer_too() -> None:
    bench = Bench()
    bench.receive(WAITING_API)
    bench.dispatcher.throttle_ms = SHORT_MS
    bench.waits[0].set_result(EncodedBody([b"y"]))
    await settle()
    assert len(bench.transport.answers()) == 1
    bench.receive(PLAIN_API)
    assert bench.started_count == 1


async def test_a_request_without_an_answer_throttles_too() -> None:
    bench = Bench(lambda: NO_RESPONSE)
    bench.dispatcher.throttle_ms = SHORT_MS
    bench.receive(PLAIN_API, PLAIN_API)
    assert bench.started_count == 1


@in_virtual_time
async def test_the_longest_wait_holds() -> None:
    bench = Bench()
    bench.receive(WAITING_API, WAITING_API)
    for throttle_ms, wait in zip((LONG_MS, SHORT_MS), bench.waits, strict=True):
        bench.dispatcher.throttle_ms = throttle_ms
        wait.set_result(EncodedBody([b"y"]))
        await settle()
    await asyncio.sleep((LONG_MS - 1) / 1000)
    assert not bench.transport.is_reading()
    await asyncio.sleep(1 / 1000)
    assert bench.transport.is_reading()


@pytest.mark.parametrize("throttle_ms", [SHORT_MS, LONG_MS])
def test_a_connection_that_ends_meanwhile_leaves_no_timer(throttle_ms: int) -> None:
    async def main() -> None:
        bench = Bench()
        bench.dispatcher.throttle_ms = throttle_ms
        bench.receive(PLAIN_API, PLAIN_API)
        bench.connection.connection_lost(None)
        await asyncio.get_running_loop().create_future()

    loop = VirtualLoop()
    began_ms = loop.now_ms
    with pytest.raises(Deadlock):
        run_to_end(loop, main())
    assert loop.now_ms == began_ms, "nothing is left to wait for"
