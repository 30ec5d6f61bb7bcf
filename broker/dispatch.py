"""From a frame to its handler, and from the handler's response to the frame that answers it.

The contract of handlers stands here: module `handlers/<api>.py` has `handle_<api>(broker, context, request)
-> Reply`. A handler answers at once, or returns an awaitable while an append or a wait is in flight. Errors
that the protocol has a place for are in its response; anything that it raises is our bug.

Modules of handlers, and with them the message classes, are imported at first use: all of them together take
longer than the whole start of a broker. What is not served is answered as Kafka does: an ApiVersions request
of an unknown version (KIP-511) gets the versions of ApiVersions itself, any other unknown API or version a
closed connection.
"""

import importlib
import struct
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple, Protocol, cast

from barnabas.broker.listener import Listener
from barnabas.broker.metrics import Counter, Metrics
from barnabas.protocol.api import APIS, ApiKey, ApiSpec, find_api
from barnabas.protocol.codec import decode_request, encode_response, prepare
from barnabas.protocol.errors import ErrorCode, FrameError
from barnabas.protocol.header import RequestHeader, decode_request_header, encode_response_header
from barnabas.protocol.varint import Buffer

_LENGTH = struct.Struct(">i")
_VERSIONS_OF_API_VERSIONS = struct.Struct(">hihhh")


class EncodedBody(NamedTuple):
    """A response that its handler has encoded itself, for the version that was asked for."""

    buffers: list[Buffer]
    reserved_bytes: int = 0
    """What was taken of the `ResponseBudget` for it, to be given back once the client has got it."""


class _NoResponse(Enum):
    NO_RESPONSE = "no response"


NO_RESPONSE: Final = _NoResponse.NO_RESPONSE
"""The response to a request that is not answered, such as Produce with acks=0."""

Response = Any
"""A message of the API's shape, an `EncodedBody`, or `NO_RESPONSE`."""

Reply = Response | Awaitable[Response]
"""What a handler returns. An awaitable may have two methods, as a `DelayedOperation` has: `hurry()`,
called when another request arrives behind it on its connection, and `withdraw()`, called when the
connection is gone."""


class ClientConnection(Protocol):
    """What a handler may know of the connection that a request came in on."""

    connection_id: int
    client_host: str
    listener: Listener

    @property
    def closed(self) -> bool:
        """True once nothing more can be sent: what would be acquired for this client is better left to
        others."""
        ...


class RequestContext(NamedTuple):
    """Who asks, and how. `client_host` is in Kafka's notation, as in `/127.0.0.1`."""

    api_key: int
    api_version: int
    client_id: str | None
    client_host: str
    connection_id: int
    listener: Listener
    connection: ClientConnection


Handler = Callable[[Any, RequestContext, Any], Reply]
"""Called with the broker, the context and the request in its API's shape."""


class Answer(NamedTuple):
    """A whole response frame, length included, without buffers for a request that is not answered.

    `reserved_bytes` as in `EncodedBody`.
    """

    buffers: list[Buffer]
    reserved_bytes: int = 0


class PendingAnswer(NamedTuple):
    """A request whose handler waits for something."""

    spec: ApiSpec
    header: RequestHeader
    reply: Awaitable[Response]


class LazyHandlers(dict[int, Handler]):
    """The table of handlers by API key, each imported when it is first asked for."""

    def __missing__(self, api_key: int) -> Handler:
        name = APIS[ApiKey(api_key)].name
        module = importlib.import_module(f"barnabas.broker.handlers.{name}")
        handler = cast("Handler", getattr(module, f"handle_{name}"))
        self[api_key] = handler
        return handler


class Dispatcher:
    """Starts the requests of every connection of one broker, and encodes their answers."""

    def __init__(self, broker: Any, handlers: Mapping[int, Handler], metrics: Metrics) -> None:
        self._broker = broker
        self._handlers = handlers
        self._request_counters = _request_counters(metrics)
        self.started_count = 0
        """Requests handed to a handler so far."""

    def warm(self, api_key: ApiKey) -> None:
        """Load now what the first request of this API would wait for, in its newest version."""
        prepare(api_key, APIS[api_key].max_version)
        _ = self._handlers[api_key]

    def start(self, connection: ClientConnection, frame: bytes | memoryview) -> Answer | PendingAnswer:
        """Have the request in `frame` handled, up to the point where its handler waits.

        Raises `FrameError` if the connection is to be closed, and whatever a handler raises.
        """
        header = decode_request_header(frame)
        spec = find_api(header.api_key)
        if spec is None or (spec.inter_broker and not connection.listener.inter_broker):
            raise FrameError(f"API {header.api_key} is not served.")
        if not spec.serves(header.api_version):
            return _unsupported_version(spec, header)
        self.started_count += 1
        self._request_counters[header.api_key].add()
        request = decode_request(spec.key, header.api_version, frame, header.body_offset)
        context = RequestContext(
            header.api_key,
            header.api_version,
            header.client_id,
            connection.client_host,
            connection.connection_id,
            connection.listener,
            connection,
        )
        reply = self._handlers[header.api_key](self._broker, context, request)
        if not isinstance(reply, EncodedBody) and isinstance(reply, Awaitable):
            return PendingAnswer(spec, header, reply)
        return encode_answer(spec, header, reply)


def encode_answer(spec: ApiSpec, header: RequestHeader, response: Response) -> Answer:
    """The frame that answers the request of `header` with `response`."""
    if response is NO_RESPONSE:
        return Answer([])
    body: Sequence[Buffer]
    if isinstance(response, EncodedBody):
        body, reserved_bytes = response
    else:
        body, reserved_bytes = encode_response(spec.key, header.api_version, response), 0
    response_header = encode_response_header(spec, header.api_version, header.correlation_id)
    return Answer(_frame(response_header, body), reserved_bytes)


def _frame(response_header: bytes, body: Sequence[Buffer]) -> list[Buffer]:
    size_bytes = len(response_header) + sum(map(len, body))
    return [_LENGTH.pack(size_bytes) + response_header, *body]


def _unsupported_version(spec: ApiSpec, header: RequestHeader) -> Answer:
    """ApiVersions of a version that we don't know is answered in version 0, which every client can read."""
    if spec.key is not ApiKey.API_VERSIONS:
        raise FrameError(f"API {spec.name} is not served in version {header.api_version}.")
    body = _VERSIONS_OF_API_VERSIONS.pack(
        ErrorCode.unsupported_version.value, 1, spec.key, spec.advertised_min, spec.max_version
    )
    return Answer(_frame(encode_response_header(spec, 0, header.correlation_id), [body]))


def _request_counters(metrics: Metrics) -> dict[int, Counter]:
    return {int(key): metrics.counter("requests", api=spec.name) for key, spec in APIS.items()}
