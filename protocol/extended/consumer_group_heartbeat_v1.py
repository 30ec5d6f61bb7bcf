"""ConsumerGroupHeartbeat version 1 with partitions that members share by hashes of keys."""

from dataclasses import dataclass, field

from kio.schema.consumer_group_heartbeat.v1 import request, response
from kio.schema.consumer_group_heartbeat.v1.request import TopicPartitions as OwnedTopicPartitions

__all__ = [
    "Assignment",
    "ConsumerGroupHeartbeatRequest",
    "ConsumerGroupHeartbeatResponse",
    "OwnedTopicPartitions",
    "TopicPartitions",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupHeartbeatRequest(request.ConsumerGroupHeartbeatRequest):
    individual_commit: bool = field(metadata={"kafka_type": "bool", "tag": 10_000}, default=False)
    """Whether the member commits offsets individually, and so can share partitions; in every heartbeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPartitions(response.TopicPartitions):
    hash_ranges: bytes | None = field(metadata={"kafka_type": "bytes", "tag": 10_000}, default=None)
    """The hashes that the member reads of those of the partitions that it shares, see `packed`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment(response.Assignment):
    topic_partitions: tuple[TopicPartitions, ...]
    """The partitions assigned to the member that can be used immediately."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupHeartbeatResponse(response.ConsumerGroupHeartbeatResponse):
    assignment: Assignment | None = field(default=None)
    """null if not provided; the assignment otherwise."""
