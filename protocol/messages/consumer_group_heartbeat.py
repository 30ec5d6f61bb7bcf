"""ConsumerGroupHeartbeat (key 68, KIP-848): version 1; version 0 has no regular expression."""

from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest
from kio.schema.consumer_group_heartbeat.v1.request import TopicPartitions as OwnedTopicPartitions
from kio.schema.consumer_group_heartbeat.v1.response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

__all__ = [
    "Assignment",
    "ConsumerGroupHeartbeatRequest",
    "ConsumerGroupHeartbeatResponse",
    "OwnedTopicPartitions",
    "TopicPartitions",
]
