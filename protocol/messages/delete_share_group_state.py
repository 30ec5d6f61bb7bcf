"""DeleteShareGroupState (key 86, KIP-932): the messages of version 0."""

from kio.schema.delete_share_group_state.v0.request import (
    DeleteShareGroupStateRequest,
    DeleteStateData,
    PartitionData,
)
from kio.schema.delete_share_group_state.v0.response import (
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionResult,
)

__all__ = [
    "DeleteShareGroupStateRequest",
    "DeleteShareGroupStateResponse",
    "DeleteStateData",
    "DeleteStateResult",
    "PartitionData",
    "PartitionResult",
]
