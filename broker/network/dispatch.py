"""Brings a request from its frame to its handler, and its response into the frame of the answer.

The handlers (see `handler`) come from the caller, by API key. APIs and versions that are not served are
answered as in Kafka: an ApiVersions request of an unknown version (KIP-511) gets the versions of ApiVersions
itself; any other unknown API or version closes the connection.
"""

import struct
from collections.abc import Awaitable, Mapping, Sequence
from typing import Final, NamedTuple, cast

from barnabas.broker.network.handler import (
    NO_RESPONSE,
    ClientConnection,
    Handler,
    Reply,
    RequestContext,
    Response,
)
from barnabas.broker.network.large_request import LARGE_REQUEST_BYTES, LargeRequest
from barnabas.broker.network.request_metrics import MakeMeasures, plain_measures, publish_requests
from barnabas.broker.network.request_parts import cut_request, join_answers
from barnabas.broker.quotas.client_quotas import ClientQuotas
from barnabas.broker.quotas.meter import Meter, charged_ms, metered, with_throttle
from barnabas.protocol.api import APIS, ApiKey, ApiSpec
from barnabas.protocol.codec import RequestBody, decode_request, encode_response, prepare, request_decoder
from barnabas.protocol.encode.throttle import can_be_throttled_later, with_throttle_time
from barnabas.protocol.errors import ErrorCode, FrameError
from barnabas.protocol.header import RequestHeader, decode_request_header, response_header
from barnabas.protocol.tuples import maker
from barnabas.protocol.varint import Buffer
from barnabas.runtime.clock import Clock
from barnabas.runtime.completion import Completion
from barnabas.runtime.long_work import LongWork
from barnabas.runtime.metrics import Metrics
from barnabas.runtime.response_budget import EncodedBody

_LENGTH_BYTES: Final = 4
_VERSIONS_OF_API_VERSIONS: Final = struct.Struct(">hihhh")


class Answer(NamedTuple):
    """A whole response frame with its length; no buffers for a request without a response.

    `reserved_bytes` as in `EncodedBody`. For `throttle_ms` the connection accepts no request of the client.
    """

    buffers: list[Buffer]
    reserved_bytes: int = 0
    throttle_ms: int = 0


class PendingAnswer(NamedTuple):
    """A request whose handler waits."""

    spec: ApiSpec
    header: RequestHeader
    reply: Awaitable[Response]
    started_ms: int
    handled_ms: int
    """Monotonic: when the handler was called, and when it returned."""
    meter: Meter | None
    """Measures the cost of the request for its client; None without quotas."""


_new_answer, _new_context = maker(Answer), maker(RequestContext)


class Dispatcher:
    """Starts the requests of every connection of one broker, and encodes their answers."""

    def __init__(
        self,
        handlers: Mapping[int, Handler],
        metrics: Metrics,
        clock: Clock,
        quotas: ClientQuotas | None = None,
        long_work: LongWork | None = None,
        *,
        default_partition_count: int = 1,
        make_measures: MakeMeasures = plain_measures,
    ) -> None:
        """`long_work` reads and answers large requests; without it they are treated like all others.

        `default_partition_count` is `num.partitions`.
        """
        self._long_work = long_work
        self._default_partition_count = default_partition_count
        self._quotas = quotas
        self._handlers = handlers
        self._measures = publish_requests(metrics, make_measures)
        self._monotonic_ms = clock.monotonic_ms
        self.started_count = 0
        """Requests handed to a handler so far."""

    def warm(self, api_key: ApiKey) -> None:
        """Loads the handler and the codec of an API in its newest version, before the first request."""
        prepare(api_key, APIS[api_key].max_version)
        _ = self._handlers[api_key]

    def start(self, connection: ClientConnection, frame: bytes | memoryview) -> Answer | PendingAnswer:
        """Handles the request in `frame`, until its handler responds or waits.

        Raises `FrameError` if the connection must be closed, and passes on exceptions of the handler.
        """
        header = decode_request_header(frame)
        spec = header.spec
        if spec is None or (spec.inter_broker and not connection.listener.inter_broker):
            raise FrameError(f"API {header.api_key} is not served.")
        if not spec.min_version <= header.api_version <= spec.max_version:
            return _unsupported_version(spec, header)
        self.started_count += 1
        measures = self._measures[header.api_key]
        measures.count_by_version[header.api_version] += 1
        measures.request_bytes.observe(len(frame))
        started_ms = self._monotonic_ms()
        has_quotas = self._quotas is not None and self._quotas.active
        meter = self._start_meter(spec, header, len(frame)) if has_quotas else None
        context = _new_context(
            (
                header.api_key,
                header.api_version,
                header.client_id,
                connection.client_host,
                connection.connection_id,
                connection.listener,
                connection,
                started_ms,
            )
        )
        long_work = self._long_work
        if long_work is not None and len(frame) >= LARGE_REQUEST_BYTES and spec.key is not ApiKey.PRODUCE:
            reply: Reply = self._large_request(long_work, header, context, frame, meter)
        else:
            request = request_decoder(header.api_key, header.api_version)(frame, header.body_offset)
            reply = self._handlers[header.api_key](context, request)
        response: Response
        if isinstance(reply, EncodedBody):
            response = reply
        elif isinstance(reply, Completion) and reply.done:
            response = reply.result()
        elif hasattr(reply, "__await__"):  # `isinstance` with an abstract class runs Python.
            if meter is not None:
                meter.stop_clock()
            waiting = cast("Awaitable[Response]", reply)
            return PendingAnswer(spec, header, waiting, started_ms, self._monotonic_ms(), meter)
        else:
            response = reply  # pyright: ignore[reportAssignmentType]  # no awaitable
        answer = encode_answer(spec, header, response, meter)
        measures.answered_at_once(self._monotonic_ms() - started_ms, answer.throttle_ms)
        return answer

    def answer(self, pending: PendingAnswer, response: Response) -> Answer:
        """The frame for a request whose wait has ended with `response`."""
        if pending.meter is not None:
            pending.meter.start_clock()
        answer = encode_answer(pending.spec, pending.header, response, pending.meter)
        waited_ms = self._monotonic_ms() - pending.handled_ms
        measures = self._measures[pending.header.api_key]
        measures.waited(pending.handled_ms - pending.started_ms, waited_ms, answer.throttle_ms)
        return answer

    def _large_request(
        self,
        work: LongWork,
        header: RequestHeader,
        context: RequestContext,
        frame: bytes | memoryview,
        meter: Meter | None,
    ) -> LargeRequest[RequestBody]:
        handler = self._handlers[header.api_key]
        api_key, version = header.api_key, header.api_version

        def read() -> Sequence[RequestBody]:
            request = decode_request(api_key, version, frame, header.body_offset)
            if isinstance(request, tuple):  # from one of the own decoders; only its handler can cut it
                return [request]
            return cut_request(api_key, request, self._default_partition_count)

        def write(requests: Sequence[RequestBody], responses: Sequence[Response]) -> Response:
            return _encoded(api_key, version, join_answers(api_key, requests[-1], responses))

        return LargeRequest(
            lambda: work.run(lambda: metered(meter, read)),
            lambda request: metered(meter, lambda: handler(self._now(context), request)),
            lambda requests, responses: work.run(lambda: metered(meter, lambda: write(requests, responses))),
        )

    def _now(self, context: RequestContext) -> RequestContext:
        """The context of a handler that is called now, because the request has waited to be read."""
        return context._replace(started_ms=self._monotonic_ms())

    def _start_meter(self, spec: ApiSpec, header: RequestHeader, request_bytes: int) -> Meter | None:
        """None for a request between brokers, which is exempt from quotas."""
        if self._quotas is None or spec.inter_broker:
            return None
        return Meter(self._quotas, spec.key, header.client_id, request_bytes)


def _encoded(api_key: int, version: int, response: Response) -> Response:
    """The encoded response to a large request.

    It is returned unchanged if its handler has encoded it, or if the throttle time must be set before the
    encoding.
    """
    if response is NO_RESPONSE or isinstance(response, EncodedBody):
        return response
    if not can_be_throttled_later(api_key, version):
        return response
    return EncodedBody(
        list[Buffer](encode_response(api_key, version, response)), throttle_ms=charged_ms(response)
    )


def encode_answer(
    spec: ApiSpec, header: RequestHeader, response: Response, meter: Meter | None = None
) -> Answer:
    """The frame for the request of `header` with `response`, whose cost `meter` charges to the client."""
    body: Sequence[Buffer]
    reserved_bytes = throttle_ms = 0
    if response is NO_RESPONSE:
        return Answer([], throttle_ms=0 if meter is None else meter.charge(0, is_answered=False))
    if isinstance(response, EncodedBody):
        body, reserved_bytes, throttle_ms = response
        if meter is not None:
            throttle_ms = meter.charge(throttle_ms, is_answered=True)
        if throttle_ms:
            body = with_throttle_time(spec.key, header.api_version, body, throttle_ms)
    else:
        if meter is not None:
            throttle_ms = meter.charge(charged_ms(response), is_answered=True)
            response = with_throttle(response, throttle_ms)
        body = encode_response(spec.key, header.api_version, response)
    start = response_header(spec, header.api_version)
    size_bytes = start.size - _LENGTH_BYTES + sum(map(len, body))
    return _new_answer(([start.pack(size_bytes, header.correlation_id), *body], reserved_bytes, throttle_ms))


def _unsupported_version(spec: ApiSpec, header: RequestHeader) -> Answer:
    """The response to an unknown version of ApiVersions is in version 0, which every client can read."""
    if spec.key is not ApiKey.API_VERSIONS:
        raise FrameError(f"API {spec.name} is not served in version {header.api_version}.")
    body = _VERSIONS_OF_API_VERSIONS.pack(
        ErrorCode.unsupported_version.value, 1, spec.key, spec.advertised_min, spec.max_version
    )
    start = response_header(spec, 0)
    return Answer([start.pack(start.size - _LENGTH_BYTES + len(body), header.correlation_id), body])
