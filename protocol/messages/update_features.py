"""UpdateFeatures (key 57, KIP-584, KIP-1022): the messages of version 2, and those of version 1, whose
response is per feature.
"""

from kio.schema.update_features.v1.request import UpdateFeaturesRequest as UpdateFeaturesRequestPerFeature
from kio.schema.update_features.v1.response import UpdatableFeatureResult
from kio.schema.update_features.v1.response import UpdateFeaturesResponse as UpdateFeaturesResponsePerFeature
from kio.schema.update_features.v2.request import FeatureUpdateKey, UpdateFeaturesRequest
from kio.schema.update_features.v2.response import UpdateFeaturesResponse

__all__ = [
    "FeatureUpdateKey",
    "UpdatableFeatureResult",
    "UpdateFeaturesRequest",
    "UpdateFeaturesRequestPerFeature",
    "UpdateFeaturesResponse",
    "UpdateFeaturesResponsePerFeature",
]
