"""Begins to trace requests (`opentelemetry.spans.enable`). The libraries are loaded only then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

    from barnabas.broker.network.request_metrics import RequestMeasures

SERVICE_NAME = "barnabas"


class RequestTracing:
    """Sends spans in a thread of its own, from its creation until `close`."""

    def __init__(self, provider: TracerProvider, wall_ms: Callable[[], int]) -> None:
        from barnabas.broker.tracing.request_spans import TracedMeasures

        self._provider = provider
        tracer = provider.get_tracer(SERVICE_NAME)
        self.make_measures: Callable[[int], RequestMeasures] = partial(
            TracedMeasures, tracer=tracer, wall_ms=wall_ms
        )
        """Makes the measures of one API."""

    async def close(self) -> None:
        """Sends the spans that are left; waits for the exporter's own time limit."""
        await asyncio.to_thread(self._provider.shutdown)


def open_tracing(wall_ms: Callable[[], int]) -> RequestTracing:
    """Traces as OpenTelemetry's environment variables say. `wall_ms` is the time of day."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    named = Resource.create({"service.name": SERVICE_NAME}).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=named)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return RequestTracing(provider, wall_ms)
