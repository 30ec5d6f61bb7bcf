"""The limit on the number of topics that a member of a group subscribes to by name.

A heartbeat is handled in one piece, and its time grows with the names. In Apache Kafka only the size of a
record limits them, to tens of thousands of names.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import TYPE_CHECKING

from barnabas.protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from barnabas.coordinator.metadata.image import MetadataImage

MISSING_NAMES_MAX = 5_000
"""A subscription may name this many topics that do not exist: deleted ones, and ones yet to be created."""


def check_subscribed_names(image: MetadataImage, names: Sized | None) -> None:
    """Raises `ApiError` INVALID_REQUEST for a subscription to far more topics than exist."""
    names_max = len(image.topics_by_name) + MISSING_NAMES_MAX
    if names is None or len(names) <= names_max:
        return
    message = f"The subscription names {len(names)} topics; the present limit is {names_max}."
    raise ApiError(ErrorCode.invalid_request, message)
