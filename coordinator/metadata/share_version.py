"""Whether share groups are served: they are, unless UpdateFeatures has set share.version to 0 (KIP-932).

Every share API answers UNSUPPORTED_VERSION then. Groups and what they have delivered stay as they are, and go
on when the feature is back.
"""

from barnabas.coordinator.metadata.features import SHARE_VERSION
from barnabas.coordinator.metadata.image import MetadataImage
from barnabas.protocol.errors import ApiError, ErrorCode


def share_groups_enabled(image: MetadataImage) -> bool:
    return image.feature_level(SHARE_VERSION) > 0


def require_share_groups(image: MetadataImage) -> None:
    """Raises `ApiError` if they aren't served."""
    if not share_groups_enabled(image):
        raise ApiError(ErrorCode.unsupported_version)
