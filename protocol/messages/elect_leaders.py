"""ElectLeaders (key 43, KIP-460): the messages of version 2."""

from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.elect_leaders.v2.response import ElectLeadersResponse, PartitionResult, ReplicaElectionResult

__all__ = [
    "ElectLeadersRequest",
    "ElectLeadersResponse",
    "PartitionResult",
    "ReplicaElectionResult",
    "TopicPartitions",
]
