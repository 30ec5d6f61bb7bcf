"""Fakes for the tests of the network: a transport, a clock, timers and a broker, which the test controls."""

import asyncio
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from barnabas.broker.network.handler import Handler, Reply
from barnabas.broker.quotas.client_quotas import ClientQuotas, QuotaWindows
from barnabas.broker.quotas.connection_quotas import ConnectionQuotas
from barnabas.protocol.api import ApiKey
from barnabas.runtime.clock import MonotonicMs, WallMs
from barnabas.runtime.deadlines import Deadlines
from barnabas.runtime.metrics import Metrics
from barnabas.runtime.response_budget import EncodedBody

WAITING_API: Final[int] = ApiKey.LIST_GROUPS
"""An API whose version 0 has an empty request, as that of `PLAIN_API`; each test has its own handlers."""

PLAIN_API: Final[int] = ApiKey.API_VERSIONS


class ManualClock:
    """Stands still until the test sets the time."""

    def __init__(self) -> None:
        self.now_ms = 1_000

    def wall_ms(self) -> WallMs:
        return WallMs(self.now_ms)

    def monotonic_ms(self) -> MonotonicMs:
        return MonotonicMs(self.now_ms)


class ManualTimers:
    """Stands in for `loop.call_later`: `advance` moves the clock and calls due timers."""

    class Handle:
        def __init__(self, due_ms: int, callback: Callable[[], None]) -> None:
            self.due_ms = due_ms
            self.callback = callback
            self.cancelled = False

        def cancel(self) -> None:
            self.cancelled = True

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._handles: list[ManualTimers.Handle] = []

    def call_later(self, delay_seconds: float, callback: Callable[[], None]) -> "ManualTimers.Handle":
        handle = self.Handle(self._clock.now_ms + round(delay_seconds * 1000), callback)
        self._handles.append(handle)
        return handle

    @property
    def armed_ms(self) -> list[int]:
        """The deadlines of the live timers."""
        return [handle.due_ms for handle in self._handles if not handle.cancelled]

    def advance(self, ms: int) -> None:
        end_ms = self._clock.now_ms + ms
        while due := [h for h in self._handles if not h.cancelled and h.due_ms <= end_ms]:
            handle = min(due, key=lambda h: h.due_ms)
            self._handles.remove(handle)
            self._clock.now_ms = max(self._clock.now_ms, handle.due_ms)
            handle.callback()
        self._clock.now_ms = end_ms


class FakeTransport(asyncio.Transport):
    """Keeps written bytes, and whether reading is paused; `stall` makes the peer stop reading."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self._reading = True
        self._closing = False
        self.aborted = False
        self.stalled_protocol: asyncio.BufferedProtocol | None = None

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 50_000) if name == "peername" else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return len(self.writes[-1]) if self.writes else 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writelines([data])

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.writes.append(b"".join(list_of_data))
        if self.stalled_protocol is not None:
            self.stalled_protocol.pause_writing()

    def pause_reading(self) -> None:
        assert self._reading
        self._reading = False

    def resume_reading(self) -> None:
        assert not self._reading
        self._reading = True

    def is_reading(self) -> bool:
        return self._reading

    def close(self) -> None:
        self._closing = True

    def is_closing(self) -> bool:
        return self._closing

    def abort(self) -> None:
        self.aborted = True

    def answers(self) -> list[tuple[int, bytes]]:
        """Correlation id and body of every answer written so far."""
        return list(split_answers(b"".join(self.writes)))


class FakeBroker:
    """A broker for the server, with the ids of closed connections."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        self.clock = ManualClock()
        windows = QuotaWindows(sample_count=11, window_ms=1000)
        self.deadlines = Deadlines(self.clock)
        self.quotas = ClientQuotas(windows, windows, self.clock.monotonic_ms)
        self.connection_quotas = ConnectionQuotas(windows, self.clock.monotonic_ms)
        self.closed_connection_ids: list[int] = []
        self.connection_gone = asyncio.Event()

    def connection_closed(self, connection_id: int) -> None:
        self.closed_connection_ids.append(connection_id)
        self.connection_gone.set()


def request_frame(
    api_key: int, correlation_id: int, version: int = 0, body: bytes = b"", client: bytes = b"test"
) -> bytes:
    """A whole frame, with its length."""
    header = struct.pack(">hhih", api_key, version, correlation_id, len(client)) + client
    return struct.pack(">i", len(header + body)) + header + body


def split_answers(stream: bytes) -> Iterator[tuple[int, bytes]]:
    """Correlation id and body of each answer in `stream`, for headers of version 0."""
    position = 0
    while position < len(stream):
        size_bytes, correlation_id = struct.unpack_from(">ii", stream, position)
        yield correlation_id, stream[position + 8 : position + 4 + size_bytes]
        position += 4 + size_bytes


def body(text: str) -> EncodedBody:
    return EncodedBody([text.encode()])


def always(reply: Reply) -> Handler:
    """A handler with the same reply to every request."""

    def handle(*_: object) -> Reply:
        return reply

    return handle


async def settle() -> None:
    """Let the loop run all ready callbacks."""
    for _ in range(5):
        await asyncio.sleep(0)
