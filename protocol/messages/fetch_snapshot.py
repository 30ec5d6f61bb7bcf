"""FetchSnapshot (key 59, KIP-630, KIP-853): the messages of version 1."""

from kio.schema.fetch_snapshot.v1.request import FetchSnapshotRequest
from kio.schema.fetch_snapshot.v1.request import PartitionSnapshot as PartitionSnapshotRequest
from kio.schema.fetch_snapshot.v1.request import TopicSnapshot as TopicSnapshotRequest
from kio.schema.fetch_snapshot.v1.response import (
    FetchSnapshotResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionSnapshot,
    SnapshotId,
    TopicSnapshot,
)

__all__ = [
    "FetchSnapshotRequest",
    "FetchSnapshotResponse",
    "LeaderIdAndEpoch",
    "NodeEndpoint",
    "PartitionSnapshot",
    "PartitionSnapshotRequest",
    "SnapshotId",
    "TopicSnapshot",
    "TopicSnapshotRequest",
]
