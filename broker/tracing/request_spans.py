"""One span for each answered request, made when it is answered, from the times that the metrics get.

Times have whole milliseconds. A span has no parent, because Kafka's requests carry no trace; the producer's
trace is in the headers of its records, which the broker does not read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from opentelemetry.trace import SpanKind, Tracer

from barnabas.broker.network.request_metrics import RequestMeasures, request_name

_NS_PER_MS: Final = 1_000_000
_SYSTEM: Final = {"messaging.system": "kafka"}


class TracedMeasures(RequestMeasures):
    """The measures of one API's requests, which also become spans."""

    __slots__ = ("_name", "_tracer", "_wall_ms")

    def __init__(self, api_key: int, tracer: Tracer, wall_ms: Callable[[], int]) -> None:
        super().__init__()
        self._name = request_name(api_key)
        self._tracer = tracer
        self._wall_ms = wall_ms

    def answered_at_once(self, took_ms: int, throttle_ms: int) -> None:
        super().answered_at_once(took_ms, throttle_ms)
        self._add_span(took_ms, 0, throttle_ms)

    def waited(self, local_ms: int, remote_ms: int, throttle_ms: int) -> None:
        super().waited(local_ms, remote_ms, throttle_ms)
        self._add_span(local_ms, remote_ms, throttle_ms)

    def _add_span(self, local_ms: int, remote_ms: int, throttle_ms: int) -> None:
        end_ns = self._wall_ms() * _NS_PER_MS
        span = self._tracer.start_span(
            self._name,
            kind=SpanKind.SERVER,
            start_time=end_ns - (local_ms + remote_ms) * _NS_PER_MS,
            attributes={
                **_SYSTEM,
                "barnabas.local_ms": local_ms,
                "barnabas.remote_ms": remote_ms,
                "barnabas.throttle_ms": throttle_ms,
            },
        )
        span.end(end_ns)
