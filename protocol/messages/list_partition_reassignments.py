"""ListPartitionReassignments (key 46, KIP-455): the messages of version 0."""

from kio.schema.list_partition_reassignments.v0.request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kio.schema.list_partition_reassignments.v0.response import ListPartitionReassignmentsResponse

__all__ = [
    "ListPartitionReassignmentsRequest",
    "ListPartitionReassignmentsResponse",
    "ListPartitionReassignmentsTopics",
]
