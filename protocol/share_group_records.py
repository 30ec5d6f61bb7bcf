"""The records of share groups in `__consumer_offsets`: Kafka's schemas of KIP-932 and two additional fields.

`record_types` has the bytes around them. Barnabas has two tagged fields, both with the number 10000, which
Kafka's readers skip: `group_incarnation` of `ShareGroupMetadataValue` separates a group from an earlier,
deleted group of the same name; `zero_starts` of `TopicPartitionsInfo` lists partitions that the group reads
from offset 0. The group coordinator decides which request writes which records. The share state is not stored
here but in `control_record`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from barnabas.protocol.record_types import RecordTypes
from barnabas.protocol.schema import Int8, Int32, Int64, String, Tag, Uuid
from barnabas.protocol.topic_partitions import TopicPartitions


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupMemberMetadataKey:
    group_id: String
    member_id: String


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupMemberMetadataValue:
    """The fields that a member sent when it joined, or when they last changed."""

    rack_id: String | None
    client_id: String
    client_host: String
    subscribed_topic_names: tuple[String, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupMetadataKey:
    group_id: String


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupMetadataValue:
    """`group_epoch` grows with each change of members or topics; `metadata_hash` covers the topics."""

    group_epoch: Int32
    metadata_hash: Int64
    group_incarnation: Annotated[Int64, Tag(10000)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupTargetAssignmentMetadataKey:
    group_id: String


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupTargetAssignmentMetadataValue:
    """The group epoch of the target assignment, and the time of its computation (KIP-1263)."""

    assignment_epoch: Int32
    assignment_timestamp_ms: Annotated[Int64, Tag(0)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupTargetAssignmentMemberKey:
    group_id: String
    member_id: String


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupTargetAssignmentMemberValue:
    """The partitions that the assignor chose for one member."""

    topic_partitions: tuple[TopicPartitions, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupCurrentMemberAssignmentKey:
    group_id: String
    member_id: String


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupCurrentMemberAssignmentValue:
    """The partitions that a member has now; `state` is Kafka's MemberState, 0 for stable."""

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: tuple[TopicPartitions, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPartitionsInfo:
    """Partitions of a topic; of those, the group begins at offset 0 in `zero_starts` (decision 20)."""

    topic_id: Uuid
    topic_name: String
    partitions: tuple[Int32, ...]
    zero_starts: Annotated[tuple[Int32, ...], Tag(10000)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicInfo:
    topic_id: Uuid
    topic_name: String


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupStatePartitionMetadataKey:
    group_id: String


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupStatePartitionMetadataValue:
    """The partitions whose share state is being initialized, is initialized, or is being deleted."""

    initializing_topics: tuple[TopicPartitionsInfo, ...]
    initialized_topics: tuple[TopicPartitionsInfo, ...]
    deleting_topics: tuple[TopicInfo, ...]


ShareGroupKey = (
    ShareGroupMemberMetadataKey
    | ShareGroupMetadataKey
    | ShareGroupTargetAssignmentMetadataKey
    | ShareGroupTargetAssignmentMemberKey
    | ShareGroupCurrentMemberAssignmentKey
    | ShareGroupStatePartitionMetadataKey
)
ShareGroupValue = (
    ShareGroupMemberMetadataValue
    | ShareGroupMetadataValue
    | ShareGroupTargetAssignmentMetadataValue
    | ShareGroupTargetAssignmentMemberValue
    | ShareGroupCurrentMemberAssignmentValue
    | ShareGroupStatePartitionMetadataValue
)

ShareGroupRecord: TypeAlias = tuple[ShareGroupKey, ShareGroupValue | None]
"""Key and value; a value of None is a tombstone."""

_RECORD_TYPES = RecordTypes[ShareGroupKey, ShareGroupValue](
    {
        10: (ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue),
        11: (ShareGroupMetadataKey, ShareGroupMetadataValue),
        12: (ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue),
        13: (ShareGroupTargetAssignmentMemberKey, ShareGroupTargetAssignmentMemberValue),
        14: (ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue),
        15: (ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue),
    }
)

encode_share_group_key = _RECORD_TYPES.encode_key
encode_share_group_value = _RECORD_TYPES.encode_value
decode_share_group_record = _RECORD_TYPES.decode
