"""Whether consumer groups of the new protocol are enabled: the feature `group.version` (KIP-848)."""

from __future__ import annotations

from barnabas.coordinator.metadata.features import GROUP_VERSION
from barnabas.coordinator.metadata.image import MetadataImage
from barnabas.protocol.errors import ApiError, ErrorCode


def require_consumer_groups(image: MetadataImage) -> None:
    """UNSUPPORTED_VERSION if the feature's level is 0."""
    if image.feature_level(GROUP_VERSION) == 0:
        raise ApiError(ErrorCode.unsupported_version, "group.version is 0.")
