"""The contract between the dispatcher and the handlers.

The module `handlers/<api>.py` has the function `handle_<api>(parts, context, request) -> Reply`. Its class
`Parts` names the attributes of the broker that the module uses; `LazyHandlers` binds them.

A handler responds immediately, or returns an awaitable while an append or a wait is in flight. Errors that
the protocol has a field for are part of the response; any exception out of a handler is a bug in Barnabas.

The kind of the awaitable decides which requests of the same connection may start before it has ended:

    a `Completion`, an operation or a task   requests of the same API: when the handler returned, it had taken
                                             its place in the order of changes, or it changes nothing
    a coroutine, a `LargeRequest`            none: it may change something after later requests have begun

`InterruptibleCommit` is of the first kind although it takes its place later: its ranges of offsets add up in
any order.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

from kio.static.protocol import Entity

from barnabas.broker.config.listener import Listener
from barnabas.broker.security.principal import Principal
from barnabas.protocol.codec import RequestBody
from barnabas.runtime.response_budget import EncodedBody


class _NoResponse(Enum):
    NO_RESPONSE = "no response"


NO_RESPONSE: Final = _NoResponse.NO_RESPONSE
"""The response to a request that has no response frame, such as Produce with acks=0."""

Response: TypeAlias = Entity | EncodedBody | Literal[_NoResponse.NO_RESPONSE]
"""A message in the shape of its API, or its bytes in the version of the request, or `NO_RESPONSE`."""

Reply: TypeAlias = Response | Awaitable[Response]
"""The result of a handler. An awaitable that is also `Waiting` hears of events on its client's connection."""


class ClientConnection(Protocol):
    """The connection of a request, as handlers see it."""

    connection_id: int
    client_host: str
    listener: Listener
    principal: Principal

    @property
    def closed(self) -> bool:
        """True once nothing more can be sent. A handler then acquires no records for this client."""
        ...


class RequestContext(NamedTuple):
    """The origin of a request. `client_host` is in Kafka's notation, as in `/127.0.0.1`."""

    api_key: int
    api_version: int
    client_id: str | None
    client_host: str
    connection_id: int
    listener: Listener
    connection: ClientConnection
    started_ms: int
    """Monotonic: when its handler was called."""

    @property
    def principal(self) -> Principal:
        """The client's identity."""
        return self.connection.principal


Handler: TypeAlias = Callable[[RequestContext, RequestBody], Reply]
"""The handler of one API, with its parts. The request has the shape of that API."""
