"""The table of all operations that a broker serves over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.broker.http.api.groups import GroupRoutes
from barnabas.broker.http.api.live import LiveRoutes
from barnabas.broker.http.api.record_search import SearchRoutes
from barnabas.broker.http.api.share_groups import ShareGroupRoutes
from barnabas.broker.http.api.share_records import ShareRecordRoutes
from barnabas.broker.http.api.stuck_records import StuckRecordRoutes
from barnabas.broker.http.api.topics import TopicRoutes
from barnabas.broker.http.console import ConsoleRoutes
from barnabas.broker.http.health import HealthRoutes
from barnabas.broker.http.metrics_routes import MetricsRoutes
from barnabas.broker.http.routes import Operation
from barnabas.broker.http.streams import Streams

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker


def broker_operations(broker: Broker, streams: Streams) -> Sequence[Operation]:
    """In the order of the OpenAPI document, which is not one of them (`openapi`)."""
    return (
        *HealthRoutes(broker).operations(),
        *MetricsRoutes(broker.metrics).operations(),
        *TopicRoutes(broker).operations(),
        *SearchRoutes(broker).operations(),
        *GroupRoutes(broker).operations(),
        *ShareGroupRoutes(broker).operations(),
        *ShareRecordRoutes(broker).operations(),
        *StuckRecordRoutes(broker).operations(),
        *LiveRoutes(broker, streams).operations(),
        *ConsoleRoutes().operations(),
    )
