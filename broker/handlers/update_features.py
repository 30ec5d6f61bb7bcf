"""UpdateFeatures (key 57, versions 0 to 2; KIP-584, KIP-1022): sets the levels of features, all or none.

The controller decides on the levels. `PerFeature` is versions 0 and 1: without an error the response has a
result for each feature. If the request names a feature twice, the last level counts, as in Kafka. timeout_ms
is not used.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from kio.schema.update_features.v1.request import UpdateFeaturesRequest as UpdateFeaturesRequestPerFeature
from kio.schema.update_features.v1.response import UpdatableFeatureResult
from kio.schema.update_features.v1.response import UpdateFeaturesResponse as UpdateFeaturesResponsePerFeature
from kio.schema.update_features.v2.request import UpdateFeaturesRequest
from kio.schema.update_features.v2.response import UpdateFeaturesResponse

from barnabas.broker.network.replies import respond_when_done
from barnabas.coordinator.metadata.features import FeatureUpdate
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.primitive import milliseconds

if TYPE_CHECKING:
    from barnabas.broker.network.handler import Reply, RequestContext
    from barnabas.coordinator.metadata.controller import Controller

_ANSWERS_PER_FEATURE_TO = 1

Response = UpdateFeaturesResponse | UpdateFeaturesResponsePerFeature


class Parts(NamedTuple):
    metadata: Controller


def handle_update_features(
    parts: Parts,
    context: RequestContext,
    request: UpdateFeaturesRequest | UpdateFeaturesRequestPerFeature,
) -> Reply:
    updates = {
        update.feature: FeatureUpdate(update.feature, update.max_version_level, update.upgrade_type)
        for update in request.feature_updates
    }

    version = context.api_version
    return respond_when_done(
        parts.metadata.update_features([*updates.values()], validate_only=request.validate_only),
        lambda _: _response(version, None, updates),
        lambda error: _response(version, error, ()),
    )


def _response(api_version: int, error: ApiError | None, names: Iterable[str]) -> Response:
    error_code, message = ErrorCode.none, None
    if error is not None:
        error_code = error.code
        message = (
            "The update failed for all features since the following feature had an error: "
            f"{error.message or ''}"
        )
    if api_version > _ANSWERS_PER_FEATURE_TO:
        return UpdateFeaturesResponse(
            throttle_time=milliseconds(0), error_code=error_code, error_message=message
        )
    return UpdateFeaturesResponsePerFeature(
        throttle_time=milliseconds(0),
        error_code=error_code,
        error_message=message,
        results=tuple(
            UpdatableFeatureResult(feature=name, error_code=ErrorCode.none, error_message="NONE")
            for name in names
        ),
    )
