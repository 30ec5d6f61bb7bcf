"""Streams of server-sent events: their number is bounded, and the end of the server ends them.

The form is that of the HTML standard, "Server-sent events". An event is sent only if it differs from the last
one; comments keep the connection alive otherwise.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Final

from msgspec import Struct, json
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from barnabas.broker.http.problem import Problem, problem_of
from barnabas.protocol.errors import ApiError
from barnabas.storage.errors import StorageError

EVENT_STREAM_TYPE: Final = "text/event-stream"

STREAMS_MAX: Final = 16
"""A further stream is refused (503)."""

SILENCE_SECONDS: Final = 15.0
"""After this time without an event a comment is sent."""

_COMMENT: Final = b": nothing has changed\n\n"

Look = Callable[[], Awaitable[Struct]]
"""The state to send now. Raises Problem, ApiError or StorageError, which ends the stream."""


class Streams:
    """All streams of one server."""

    def __init__(self) -> None:
        self._closing = asyncio.Event()
        self._count = 0

    def close(self) -> None:
        """End all streams, and begin none."""
        self._closing.set()

    async def begin(self, look: Look, interval_seconds: float) -> Response:
        """A stream with an event `state` whenever the state has changed since the last look, and an event
        `problem` at its end. The first look is an ordinary error if it fails. Raises Problem.
        """
        if self._count >= STREAMS_MAX or self._closing.is_set():
            reason = f"The broker begins no further stream; it has at most {STREAMS_MAX}."
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, reason)
        self._count += 1  # before the look, which may wait while other streams begin
        try:
            first = await look()
        except BaseException:
            self._end()
            raise
        return _EventStream(self._events(first, look, interval_seconds), self._end)

    def _end(self) -> None:
        self._count -= 1

    async def _events(self, first: Struct, look: Look, interval_seconds: float) -> AsyncIterator[bytes]:
        try:
            last = json.encode(first)
            yield _event("state", last)
            silent_seconds = 0.0
            while not await self._ends_within(interval_seconds):
                state = json.encode(await look())
                silent_seconds += interval_seconds
                if state != last:
                    last, silent_seconds = state, 0.0
                    yield _event("state", state)
                elif silent_seconds >= SILENCE_SECONDS:
                    silent_seconds = 0.0
                    yield _COMMENT
        except Problem as problem:
            yield _event("problem", json.encode(problem.details))
        except (ApiError, StorageError) as error:
            yield _event("problem", json.encode(problem_of(error).details))

    async def _ends_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)
        return self._closing.is_set()


class _EventStream(StreamingResponse):
    """Calls `on_end` when it ends, also if the client is gone before the first event."""

    def __init__(self, events: AsyncIterator[bytes], on_end: Callable[[], None]) -> None:
        super().__init__(events, headers={"Content-Type": EVENT_STREAM_TYPE})
        self._on_end = on_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._on_end()


def _event(name: str, data: bytes) -> bytes:
    """JSON has no line breaks, so one line is enough."""
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"
