"""The table of all operations that a broker serves over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.broker.http.health import HealthRoutes
from barnabas.broker.http.routes import Operation

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker


def broker_operations(broker: Broker) -> Sequence[Operation]:
    """In the order of the OpenAPI document."""
    return (*HealthRoutes(broker).operations(),)
