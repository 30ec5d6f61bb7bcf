"""DescribeQuorum (key 55, KIP-595, KIP-836, KIP-853): the messages of version 2."""

from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest
from kio.schema.describe_quorum.v2.request import PartitionData as RequestPartitionData
from kio.schema.describe_quorum.v2.request import TopicData as RequestTopicData
from kio.schema.describe_quorum.v2.response import (
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)

__all__ = [
    "DescribeQuorumRequest",
    "DescribeQuorumResponse",
    "Listener",
    "Node",
    "PartitionData",
    "ReplicaState",
    "RequestPartitionData",
    "RequestTopicData",
    "TopicData",
]
