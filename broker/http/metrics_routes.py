"""`/metrics`: the broker's metrics for Prometheus. Prometheus's library is loaded at the first request."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response

from barnabas.broker.http.routes import TEXT_TYPE, Call, Operation, without_parameters
from barnabas.runtime.metrics import Metrics


class MetricsRoutes:
    """The operation that a Prometheus server asks for."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def operations(self) -> Sequence[Operation]:
        return (
            Operation(
                path="/metrics",
                handler=without_parameters(self._metrics_now),
                name="getMetrics",
                summary="All metrics, as OpenMetrics or in Prometheus's text format",
                tag="health",
                media_type=TEXT_TYPE,
            ),
        )

    async def _metrics_now(self, call: Call) -> Response:
        from barnabas.broker.http.exposition import expose

        body, content_type = await expose(self._metrics, call.headers.get("accept", ""))
        return Response(body, headers={"Content-Type": content_type})
