"""The features of the cluster: their levels, and the checks of a change (KIP-584, KIP-1022).

A feature's finalized level tells clients its usable versions; level 0 means that it is off. The parts of the
broker read the level with `MetadataImage.feature_level`. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.extended import INDIVIDUAL_COMMIT, RELEASE_DELAY, SHARE_TRANSACTIONS
from barnabas.protocol.metadata_records import FeatureLevelRecord, MetadataRecord

METADATA_VERSION = "metadata.version"
GROUP_VERSION = "group.version"
SHARE_VERSION = "share.version"
TRANSACTION_VERSION = "transaction.version"


class Levels(NamedTuple):
    """The least and the greatest level of a feature, both inclusive."""

    least: int
    greatest: int


SUPPORTED_FEATURES: Final[Mapping[str, Levels]] = {
    METADATA_VERSION: Levels(7, 33),
    GROUP_VERSION: Levels(0, 1),
    SHARE_VERSION: Levels(0, 2),
    TRANSACTION_VERSION: Levels(0, 2),
}
"""As in Apache Kafka 4.4. A new cluster gets the greatest level of each; an existing one keeps its levels."""

DEAD_LETTERS_LEVEL: Final = 2
"""The level of share.version from which on share groups write dead letters (KIP-1191)."""

EXTENSIONS: Final[Mapping[str, Levels]] = {
    INDIVIDUAL_COMMIT: Levels(1, 1),
    RELEASE_DELAY: Levels(1, 1),
    SHARE_TRANSACTIONS: Levels(1, 1),
}
"""Features that Apache Kafka lacks. Clients use the tags of docs/protocol.md only if they are listed.

They are always on at their greatest level, which ApiVersions gives as the finalized one. No record has that
level, because Kafka does not load a metadata log that finalizes an unknown feature.

individual.commit: consumers commit ranges of offsets. release.delay: share consumers release records with a
delay. share.transactional.acknowledgement: acknowledgements of share groups join a producer's transaction.
"""

_CHANGED_METADATA: Final = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33})
"""Levels of metadata.version with new records or fields, which the level below cannot store."""


class UpgradeType(IntEnum):
    """The kind of a change, by its id on the wire; the two kinds of downgrade differ for metadata.version."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """A level to finalize. `upgrade_type` may be an unknown one."""

    name: str
    level: int
    upgrade_type: int


def newly_supported(known: Iterable[str]) -> list[MetadataRecord]:
    """The records that finalize the features that are not `known` yet, at their greatest levels."""
    passed_over = frozenset(known)
    return [
        FeatureLevelRecord(name=name, feature_level=levels.greatest)
        for name, levels in SUPPORTED_FEATURES.items()
        if name not in passed_over
    ]


def decide_update_features(
    finalized: Mapping[str, int], updates: Sequence[FeatureUpdate], node_id: int
) -> list[MetadataRecord]:
    """The records that set the levels, all of them or none; raises `ApiError` for the first one that is not
    allowed. An extension may be set to its level, which needs no record.
    """
    for update in updates:
        _check(finalized.get(update.name, 0), update, node_id)
    return [
        FeatureLevelRecord(name=update.name, feature_level=update.level)
        for update in updates
        if update.name not in EXTENSIONS
    ]


def _check(current: int, update: FeatureUpdate, node_id: int) -> None:
    reason = _refusal(current, update, node_id)
    if reason is not None:
        message = f"Invalid update version {update.level} for feature {update.name}. {reason}"
        raise ApiError(ErrorCode.invalid_update_version, message)
    if update.name == METADATA_VERSION and update.level < current:
        _check_metadata_downgrade(current, update)


def _refusal(current: int, update: FeatureUpdate, node_id: int) -> str | None:
    if update.upgrade_type not in frozenset[int](UpgradeType):
        return "The controller does not support the given upgrade type."
    if update.level < 0:
        return "A feature version cannot be less than 0."
    if update.name in EXTENSIONS:
        level = EXTENSIONS[update.name].greatest
        always_on = f"It is an extension of the protocol, which is always on at level {level}."
        return None if update.level == level else always_on
    levels = SUPPORTED_FEATURES.get(update.name, Levels(0, 0))
    if not levels.least <= update.level <= levels.greatest:
        return f"Local controller {node_id} {_supports(levels)}"
    is_upgrade = update.upgrade_type == UpgradeType.UPGRADE
    if update.level < current and is_upgrade:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            "unsafe downgrade."
        )
    if update.level > current and not is_upgrade:
        return "Can't downgrade to a newer version."
    if update.name not in SUPPORTED_FEATURES:
        return f"Feature {update.name} not found."
    return None


def _supports(levels: Levels) -> str:
    if levels.greatest == 0:
        return "does not support this feature."
    return f"only supports versions {levels.least}-{levels.greatest}"


def _check_metadata_downgrade(current: int, update: FeatureUpdate) -> None:
    if _CHANGED_METADATA.isdisjoint(range(update.level + 1, current + 1)):
        return
    if update.upgrade_type == UpgradeType.UNSAFE_DOWNGRADE:
        reason = "Unsafe metadata downgrade is not supported in this version."
    else:
        reason = "Refusing to perform the requested downgrade because it might delete metadata information."
    raise ApiError(
        ErrorCode.invalid_update_version,
        f"Unsupported metadata.version downgrade from {current} to {update.level}. {reason}",
    )
