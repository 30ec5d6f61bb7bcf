"""UpdateFeatures: finalized levels, and results for each feature in older versions."""

import pytest
from kio.schema.update_features.v2.request import FeatureUpdateKey, UpdateFeaturesRequest

from barnabas.broker.handlers.update_features import handle_update_features
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import i8, i16, milliseconds
from tests.broker.handlers.admin_broker import AdminBroker, ask


def update(feature: str, level: int, upgrade_type: int = 1) -> FeatureUpdateKey:
    return FeatureUpdateKey(feature=feature, max_version_level=i16(level), upgrade_type=i8(upgrade_type))


def request(*updates: FeatureUpdateKey, validate_only: bool = False) -> UpdateFeaturesRequest:
    return UpdateFeaturesRequest(
        timeout=milliseconds(1000), feature_updates=updates, validate_only=validate_only
    )


async def test_a_level_is_finalized(broker: AdminBroker) -> None:
    response = await ask(broker, handle_update_features, request(update("share.version", 0, 2)))
    assert (response.error_code, response.error_message) == (ErrorCode.none, None)
    assert broker.metadata.image.feature_level("share.version") == 0


async def test_validation_alone_changes_nothing(broker: AdminBroker) -> None:
    validated = request(update("share.version", 0, 2), validate_only=True)
    assert (await ask(broker, handle_update_features, validated)).error_code is ErrorCode.none
    assert broker.metadata.image.feature_level("share.version") == 2


@pytest.mark.parametrize("version", [0, 1])
async def test_older_versions_have_a_result_for_each_feature(broker: AdminBroker, version: int) -> None:
    response = await ask(broker, handle_update_features, request(update("share.version", 2)), version=version)
    assert [(one.feature, one.error_code, one.error_message) for one in response.results] == [
        ("share.version", ErrorCode.none, "NONE")
    ]


@pytest.mark.parametrize("version", range(3))
async def test_the_first_fault_is_the_error_and_nothing_changes(broker: AdminBroker, version: int) -> None:
    response = await ask(broker, handle_update_features, request(update("share.version", 0)), version=version)
    assert response.error_code is ErrorCode.invalid_update_version
    assert response.error_message == (
        "The update failed for all features since the following feature had an error: Invalid update version "
        "0 for feature share.version. Can't downgrade the version of this feature without setting the "
        "upgrade type to either safe or unsafe downgrade."
    )
    assert not getattr(response, "results", ())
    assert broker.metadata.image.feature_level("share.version") == 2


async def test_an_extension_is_on_before_and_after_its_level_is_set(broker: AdminBroker) -> None:
    last_offset = broker.metadata.last_offset
    response = await ask(broker, handle_update_features, request(update("individual.commit", 1)))
    assert response.error_code is ErrorCode.none
    assert broker.metadata.last_offset == last_offset


async def test_the_last_level_of_a_duplicate_feature_counts(broker: AdminBroker) -> None:
    both = request(update("transaction.version", 0, 2), update("transaction.version", 1, 2))
    await ask(broker, handle_update_features, both)
    assert broker.metadata.image.feature_level("transaction.version") == 1
