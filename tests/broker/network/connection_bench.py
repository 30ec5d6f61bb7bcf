"""A connection whose transport, owner and handlers are controlled by the test."""

import asyncio
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from barnabas.broker.config.listener import Listener
from barnabas.broker.network.connection import Connection, ConnectionLimits
from barnabas.broker.network.dispatch import Dispatcher
from barnabas.broker.network.handler import Handler, RequestContext
from barnabas.broker.network.request_budget import RequestBudget
from barnabas.runtime.metrics import Metrics
from barnabas.runtime.response_budget import EncodedBody
from tests.broker.network.edge_fakes import (
    PLAIN_API,
    WAITING_API,
    FakeTransport,
    ManualClock,
    body,
    request_frame,
)

LISTENER = Listener("PLAINTEXT", "127.0.0.1", 9092, "localhost", 9092)


class Wait(asyncio.Future[EncodedBody]):
    """A reply that the test completes; it counts the calls of the connection."""

    def __init__(self) -> None:
        super().__init__()
        self.hurried_count = 0
        self.withdrawn_count = 0

    def hurry(self) -> None:
        self.hurried_count += 1

    def withdraw(self) -> None:
        self.withdrawn_count += 1


class Bench:
    """A connection: `PLAIN_API` is answered at once, and the test completes the replies of `WAITING_API`,
    except those of the client `quick`.
    """

    def __init__(
        self,
        limits: ConnectionLimits | None = None,
        handlers: Mapping[int, Any] | None = None,
        request_bytes_max: int | None = None,
    ) -> None:
        self.waits: list[Wait] = []
        self.plain_count = 0
        self.unfinished: list[asyncio.Future[Any]] | None = None
        self.has_room = True
        self.given_back_bytes = 0
        self.request_budget = RequestBudget(request_bytes_max)
        table: dict[int, Handler] = {
            PLAIN_API: self.handle_plain,
            WAITING_API: self.handle_waiting,
            **(handlers or {}),
        }
        dispatcher = Dispatcher(table, Metrics(), ManualClock())
        self.connection = Connection(7, LISTENER, dispatcher, self, limits or ConnectionLimits())
        self.transport = FakeTransport()
        self.connection.connection_made(self.transport)

    def handle_plain(self, context: RequestContext, request: object) -> EncodedBody:
        self.plain_count += 1
        return body(f"plain {self.plain_count}")

    def handle_waiting(self, context: RequestContext, request: object) -> Wait | EncodedBody:
        if context.client_id == "quick":
            return self.handle_plain(context, request)
        self.waits.append(Wait())
        return self.waits[-1]

    def connection_opened(self, connection: Connection) -> bool:
        return self.has_room

    def connection_closed(self, connection: Connection, unfinished: list[asyncio.Future[Any]]) -> None:
        self.unfinished = unfinished

    def note(self, write: Callable[..., None], event: str, key: Hashable, **details: object) -> None:
        write(event, **details)

    def give_back(self, reserved_bytes: int) -> None:
        self.given_back_bytes += reserved_bytes

    def receive(self, *frames: bytes) -> None:
        """Receives all frames at once, as far as the connection's buffer has room."""
        data = memoryview(b"".join(frames))
        while data:
            buffer = self.connection.get_buffer(-1)
            count = min(len(buffer), len(data))
            buffer[:count] = data[:count]
            del buffer
            self.connection.buffer_updated(count)
            data = data[count:]


def plain(correlation_id: int) -> bytes:
    return request_frame(PLAIN_API, correlation_id)


def waiting(correlation_id: int) -> bytes:
    return request_frame(WAITING_API, correlation_id)


def quick(correlation_id: int) -> bytes:
    """A request of the same API as `waiting`, which is answered at once."""
    return request_frame(WAITING_API, correlation_id, client=b"quick")
