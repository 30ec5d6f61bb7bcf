"""The records of share groups in `__consumer_offsets`: Kafka's schemas of KIP-932, with one field of our own.

A key is int16 record type and fields, without compact lengths; a value int16 version, 0 in all of them, and
fields in flexible encoding; no value (a tombstone) deletes what the key names. `ShareGroupMetadataValue`
carries the tagged field 10000, `group_incarnation`, which tells a group made again under an old name from the
one before; Kafka's readers pass over it. Which record follows from which request is the group coordinator's
subject; share state is not kept here but in `control_record`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from barnabas.protocol import schema
from barnabas.protocol.record_prefix import PREFIX_BYTES, prefix, read_prefix
from barnabas.protocol.schema import Int8, Int32, Int64, String, Tag, Uuid
from barnabas.protocol.varint import Buffer, RecordFormatError

_VALUE_VERSION = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupMemberMetadataKey:
    group_id: String
    member_id: String


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupMemberMetadataValue:
    """What a member said of itself when it joined, or last changed."""

    rack_id: String | None
    client_id: String
    client_host: String
    subscribed_topic_names: tuple[String, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupMetadataKey:
    group_id: String


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupMetadataValue:
    """`group_epoch` grows with each change of members or topics; `metadata_hash` is the topics'."""

    group_epoch: Int32
    metadata_hash: Int64
    group_incarnation: Annotated[Int64, Tag(10000)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupTargetAssignmentMetadataKey:
    group_id: String


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupTargetAssignmentMetadataValue:
    """The group epoch that the target assignment was computed for, and when (KIP-1263)."""

    assignment_epoch: Int32
    assignment_timestamp_ms: Annotated[Int64, Tag(0)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPartitions:
    topic_id: Uuid
    partitions: tuple[Int32, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupTargetAssignmentMemberKey:
    group_id: String
    member_id: String


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupTargetAssignmentMemberValue:
    """The partitions that the assignor means for one member."""

    topic_partitions: tuple[TopicPartitions, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupCurrentMemberAssignmentKey:
    group_id: String
    member_id: String


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupCurrentMemberAssignmentValue:
    """What a member has in fact; `state` is Kafka's MemberState, 0 for stable."""

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: tuple[TopicPartitions, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPartitionsInfo:
    topic_id: Uuid
    topic_name: String
    partitions: tuple[Int32, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicInfo:
    topic_id: Uuid
    topic_name: String


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupStatePartitionMetadataKey:
    group_id: String


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupStatePartitionMetadataValue:
    """The partitions whose share state is being made, is there, or is being deleted."""

    initializing_topics: tuple[TopicPartitionsInfo, ...]
    initialized_topics: tuple[TopicPartitionsInfo, ...]
    deleting_topics: tuple[TopicInfo, ...]


GroupKey = (
    ShareGroupMemberMetadataKey
    | ShareGroupMetadataKey
    | ShareGroupTargetAssignmentMetadataKey
    | ShareGroupTargetAssignmentMemberKey
    | ShareGroupCurrentMemberAssignmentKey
    | ShareGroupStatePartitionMetadataKey
)
GroupValue = (
    ShareGroupMemberMetadataValue
    | ShareGroupMetadataValue
    | ShareGroupTargetAssignmentMetadataValue
    | ShareGroupTargetAssignmentMemberValue
    | ShareGroupCurrentMemberAssignmentValue
    | ShareGroupStatePartitionMetadataValue
)

_RECORD_TYPES: dict[int, tuple[type[GroupKey], type[GroupValue]]] = {
    10: (ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue),
    11: (ShareGroupMetadataKey, ShareGroupMetadataValue),
    12: (ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue),
    13: (ShareGroupTargetAssignmentMemberKey, ShareGroupTargetAssignmentMemberValue),
    14: (ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue),
    15: (ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue),
}
_TYPE_NUMBERS = {key_class: number for number, (key_class, _) in _RECORD_TYPES.items()}


def encode_group_key(key: GroupKey) -> bytes:
    """The record's key, its type in front."""
    return prefix(_TYPE_NUMBERS[type(key)]) + schema.encode(key, 0, flexible=False)


def encode_group_value(value: GroupValue) -> bytes:
    """The record's value, its version in front."""
    return prefix(_VALUE_VERSION) + schema.encode(value, _VALUE_VERSION)


def decode_group_record(key: Buffer, value: Buffer | None) -> tuple[GroupKey, GroupValue | None] | None:
    """Key and value (None for a tombstone) of a record, or None if its type is no share group's.

    RecordFormatError if either is malformed, or the value of a version that is newer than ours.
    """
    key_class, value_class = _RECORD_TYPES.get(read_prefix(key), (None, None))
    if key_class is None or value_class is None:
        return None
    decoded_key = schema.decode(key_class, key[PREFIX_BYTES:], 0, flexible=False)
    if value is None:
        return decoded_key, None
    version = read_prefix(value)
    if version != _VALUE_VERSION:
        raise RecordFormatError(f"{value_class.__name__} has the version {version}.")
    return decoded_key, schema.decode(value_class, value[PREFIX_BYTES:], version)
