"""Levels of features: allowed and refused changes, with the messages of Kafka 4.4.0 (recorded)."""

import pytest

from barnabas.coordinator.metadata.features import (
    EXTENSIONS,
    FeatureUpdate,
    UpgradeType,
    decide_update_features,
    newly_supported,
)
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.metadata_records import FeatureLevelRecord

FINALIZED = {"metadata.version": 33, "group.version": 1, "share.version": 1, "transaction.version": 2}
UP, SAFE, UNSAFE = UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE

NEEDS_A_TYPE = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
    "downgrade."
)
ALWAYS_ON = "It is an extension of the protocol, which is always on at level 1."


@pytest.mark.parametrize(
    "update",
    [
        FeatureUpdate("share.version", 1, UP),
        FeatureUpdate("share.version", 0, SAFE),
        FeatureUpdate("transaction.version", 1, UNSAFE),
        FeatureUpdate("transaction.version", 2, SAFE),
        FeatureUpdate("metadata.version", 33, UP),
    ],
)
def test_levels_that_may_be_set_are_written_down(update: FeatureUpdate) -> None:
    assert decide_update_features(FINALIZED, [update], 1) == [
        FeatureLevelRecord(name=update.name, feature_level=update.level)
    ]


@pytest.mark.parametrize(
    ("update", "reason"),
    [
        (FeatureUpdate("share.version", 3, UP), "Local controller 1 only supports versions 0-2"),
        (FeatureUpdate("share.version", -1, UP), "A feature version cannot be less than 0."),
        (
            FeatureUpdate("share.version", 0, UP),
            NEEDS_A_TYPE,
        ),
        (FeatureUpdate("share.version", 0, 0), "The controller does not support the given upgrade type."),
        (FeatureUpdate("share.version", 0, 9), "The controller does not support the given upgrade type."),
        (FeatureUpdate("banana", 1, UP), "Local controller 1 does not support this feature."),
        (FeatureUpdate("banana", 0, UP), "Feature banana not found."),
        (FeatureUpdate("metadata.version", 5, SAFE), "Local controller 1 only supports versions 7-33"),
        (FeatureUpdate("transaction.version", 3, SAFE), "Local controller 1 only supports versions 0-2"),
        (FeatureUpdate("individual.commit", 0, SAFE), ALWAYS_ON),
        (FeatureUpdate("individual.commit", 2, UP), ALWAYS_ON),
        (FeatureUpdate("release.delay", 0, UNSAFE), ALWAYS_ON),
        (FeatureUpdate("share.transactional.acknowledgement", 0, SAFE), ALWAYS_ON),
    ],
)
def test_other_levels_are_refused(update: FeatureUpdate, reason: str) -> None:
    with pytest.raises(ApiError) as refused:
        decide_update_features(FINALIZED, [update], 1)
    assert refused.value.code is ErrorCode.invalid_update_version
    assert refused.value.message == (
        f"Invalid update version {update.level} for feature {update.name}. {reason}"
    )


@pytest.mark.parametrize("name", EXTENSIONS)
def test_an_extension_may_be_set_to_its_level_and_nothing_is_written(name: str) -> None:
    assert decide_update_features(FINALIZED, [FeatureUpdate(name, 1, UP)], 1) == []


def test_a_downgrade_goes_to_a_lower_level() -> None:
    with pytest.raises(ApiError, match="Can't downgrade to a newer version"):
        decide_update_features({"transaction.version": 1}, [FeatureUpdate("transaction.version", 2, SAFE)], 1)


@pytest.mark.parametrize(
    ("upgrade_type", "reason"),
    [
        (SAFE, "Refusing to perform the requested downgrade because it might delete metadata information."),
        (UNSAFE, "Unsafe metadata downgrade is not supported in this version."),
    ],
)
def test_metadata_does_not_go_back_to_where_it_could_not_be_held(
    upgrade_type: UpgradeType, reason: str
) -> None:
    with pytest.raises(ApiError) as refused:
        decide_update_features(FINALIZED, [FeatureUpdate("metadata.version", 32, upgrade_type)], 1)
    assert refused.value.message == f"Unsupported metadata.version downgrade from 33 to 32. {reason}"


def test_metadata_goes_back_over_levels_that_changed_nothing() -> None:
    update = FeatureUpdate("metadata.version", 27, SAFE)
    assert decide_update_features({"metadata.version": 29}, [update], 1)


def test_a_feature_that_is_refused_keeps_all_back() -> None:
    updates = [FeatureUpdate("transaction.version", 1, SAFE), FeatureUpdate("share.version", 0, UP)]
    with pytest.raises(ApiError, match=r"share\.version"):
        decide_update_features(FINALIZED, updates, 1)


def test_features_that_are_known_keep_their_level() -> None:
    assert newly_supported(["metadata.version", "share.version", "group.version"]) == [
        FeatureLevelRecord(name="transaction.version", feature_level=2)
    ]
