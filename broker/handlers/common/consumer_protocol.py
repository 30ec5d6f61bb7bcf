"""Whether consumer groups of the new protocol are served (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.config.consumer_settings import REBALANCE_PROTOCOLS
from barnabas.coordinator.metadata.features import GROUP_VERSION
from barnabas.protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.coordinator.metadata.image import MetadataImage


def require_consumer_groups(image: MetadataImage, config: BrokerConfig) -> None:
    """UNSUPPORTED_VERSION if the level of group.version is 0, or `group.coordinator.rebalance.protocols` does
    not name the protocol.
    """
    if image.feature_level(GROUP_VERSION) == 0:
        raise ApiError(ErrorCode.unsupported_version, f"{GROUP_VERSION} is 0.")
    if "consumer" not in config.items(REBALANCE_PROTOCOLS):
        raise ApiError(ErrorCode.unsupported_version, f"{REBALANCE_PROTOCOLS} does not name 'consumer'.")
