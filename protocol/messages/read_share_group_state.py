"""ReadShareGroupState (key 84, KIP-932): the messages of version 0."""

from kio.schema.read_share_group_state.v0.request import (
    PartitionData,
    ReadShareGroupStateRequest,
    ReadStateData,
)
from kio.schema.read_share_group_state.v0.response import (
    PartitionResult,
    ReadShareGroupStateResponse,
    ReadStateResult,
    StateBatch,
)

__all__ = [
    "PartitionData",
    "PartitionResult",
    "ReadShareGroupStateRequest",
    "ReadShareGroupStateResponse",
    "ReadStateData",
    "ReadStateResult",
    "StateBatch",
]
