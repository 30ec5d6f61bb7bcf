"""The bound on the topics that a member of a group subscribes to by name.

A heartbeat is decided in one piece, and its time grows with the names. Apache Kafka has no such bound but the
size of a record, which holds tens of thousands of names.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import TYPE_CHECKING

from barnabas.protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker

MISSING_NAMES_MAX = 5_000
"""So many more topics may be named than there are: some may be gone, others not be there yet."""


def check_subscribed_names(broker: Broker, names: Sized | None) -> None:
    """Refuses a subscription to far more topics than there are: ApiError INVALID_REQUEST."""
    names_max = len(broker.metadata.image.topics_by_name) + MISSING_NAMES_MAX
    if names is None or len(names) <= names_max:
        return
    message = f"The subscription names {len(names)} topics; {names_max} is the most at present."
    raise ApiError(ErrorCode.invalid_request, message)
