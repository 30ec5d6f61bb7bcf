"""ConsumerGroupDescribe version 1 with partitions that members share by hashes of keys."""

from dataclasses import dataclass, field

from kio.schema.consumer_group_describe.v1 import request, response

__all__ = [
    "Assignment",
    "ConsumerGroupDescribeRequest",
    "ConsumerGroupDescribeResponse",
    "DescribedGroup",
    "Member",
    "TopicPartitions",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupDescribeRequest(request.ConsumerGroupDescribeRequest):
    wants_shares: bool = field(metadata={"kafka_type": "bool", "tag": 10_000}, default=False)
    """Whether the response is to have the shares of partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPartitions(response.TopicPartitions):
    hash_ranges: bytes | None = field(metadata={"kafka_type": "bytes", "tag": 10_000}, default=None)
    """The hashes that the member reads of those of the partitions that it shares, see `packed`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment(response.Assignment):
    topic_partitions: tuple[TopicPartitions, ...]
    """The assigned topic-partitions to the member."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member(response.Member):
    assignment: Assignment
    """The current assignment."""
    target_assignment: Assignment
    """The target assignment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedGroup(response.DescribedGroup):
    members: tuple[Member, ...]
    """The members."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupDescribeResponse(response.ConsumerGroupDescribeResponse):
    groups: tuple[DescribedGroup, ...]
    """Each described group."""
