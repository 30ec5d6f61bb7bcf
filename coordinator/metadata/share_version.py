"""Whether share groups are enabled: they are, unless UpdateFeatures has set share.version to 0 (KIP-932).

Then every share API answers UNSUPPORTED_VERSION. Groups and their delivery state stay unchanged, and continue
when the feature is enabled again.
"""

from barnabas.coordinator.metadata.features import SHARE_VERSION
from barnabas.coordinator.metadata.image import MetadataImage
from barnabas.protocol.errors import ApiError, ErrorCode


def share_groups_enabled(image: MetadataImage) -> bool:
    return image.features.get(SHARE_VERSION, 0) > 0  # not by `feature_level`: asked at every fetch


def require_share_groups(image: MetadataImage) -> None:
    """Raises `ApiError` if share groups are disabled."""
    if image.features.get(SHARE_VERSION, 0) <= 0:
        raise ApiError(ErrorCode.unsupported_version)
