"""The records of consumer groups in `__consumer_offsets`, in Kafka's schemas of KIP-848.

`record_types` has the bytes around them. Kafka before 4.1 wrote `ConsumerGroupPartitionMetadata`: it is read,
ignored, and deleted with its group. The group coordinator decides which request writes which records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from barnabas.protocol.record_types import RecordTypes
from barnabas.protocol.schema import Bool, Bytes, Int8, Int32, Int64, String, Tag, Uuid
from barnabas.protocol.topic_partitions import TopicPartitions


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMetadataKey:
    group_id: String


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMetadataValue:
    """`epoch` grows with each change of members or topics; `metadata_hash` covers the topics."""

    epoch: Int32
    metadata_hash: Annotated[Int64, Tag(0)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupPartitionMetadataKey:
    group_id: String


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRacks:
    partition: Int32
    racks: tuple[String, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMetadata:
    topic_id: Uuid
    topic_name: String
    num_partitions: Int32
    partition_metadata: tuple[PartitionRacks, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupPartitionMetadataValue:
    """The topics that the group read, at the time of writing."""

    topics: tuple[TopicMetadata, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMemberMetadataKey:
    group_id: String
    member_id: String


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicProtocol:
    name: String
    metadata: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicMemberMetadata:
    """The fields that a member of the classic protocol sent."""

    session_timeout_ms: Int32
    supported_protocols: tuple[ClassicProtocol, ...]


NO_CLASSIC_METADATA = ClassicMemberMetadata(session_timeout_ms=0, supported_protocols=())
"""The value that Kafka reads if the field is left out. A member of the consumer protocol therefore has None,
which is written as a null."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMemberMetadataValue:
    """The fields that a member sent when it joined, or when they last changed. `individual_commit` is
    Barnabas's.
    """

    instance_id: String | None
    rack_id: String | None
    client_id: String
    client_host: String
    subscribed_topic_names: tuple[String, ...]
    subscribed_topic_regex: String | None
    rebalance_timeout_ms: Int32 = -1
    server_assignor: String | None
    classic_member_metadata: Annotated[ClassicMemberMetadata | None, Tag(0)] = NO_CLASSIC_METADATA
    individual_commit: Annotated[Bool, Tag(10_000)] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupTargetAssignmentMetadataKey:
    group_id: String


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupTargetAssignmentMetadataValue:
    """The group epoch of the target assignment, and the time of its computation (KIP-1263)."""

    assignment_epoch: Int32
    assignment_timestamp_ms: Annotated[Int64, Tag(0)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupTargetAssignmentMemberKey:
    group_id: String
    member_id: String


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPartition:
    """A partition that the member shares with others: the hashes of its keys, both ends inclusive."""

    partition: Int32
    first_hash: Int32
    last_hash: Int32


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPartitions(TopicPartitions):
    """`shares` is Barnabas's: partitions without a share are whole."""

    shares: Annotated[tuple[SharedPartition, ...], Tag(10_000)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupTargetAssignmentMemberValue:
    """The partitions that the assignor chose for one member."""

    topic_partitions: tuple[TargetPartitions, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupCurrentMemberAssignmentKey:
    group_id: String
    member_id: String


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedPartitions:
    """Partitions, and in the same order the epochs at which the member received them (KIP-1251).

    `shares` is Barnabas's: partitions without a share are whole.
    """

    topic_id: Uuid
    partitions: tuple[Int32, ...]
    assignment_epochs: Annotated[tuple[Int32, ...] | None, Tag(0)] = None
    shares: Annotated[tuple[SharedPartition, ...], Tag(10_000)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupCurrentMemberAssignmentValue:
    """The partitions of a member now, and those that it must give up; `state` is Kafka's MemberState."""

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: tuple[OwnedPartitions, ...]
    partitions_pending_revocation: tuple[OwnedPartitions, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupRegularExpressionKey:
    group_id: String
    regular_expression: String


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupRegularExpressionValue:
    """The topics that a regular expression matched, with the metadata offset and the time of day."""

    topics: tuple[String, ...]
    version: Int64
    timestamp_ms: Int64


ConsumerGroupKey = (
    ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
)
ConsumerGroupValue = (
    ConsumerGroupMetadataValue
    | ConsumerGroupPartitionMetadataValue
    | ConsumerGroupMemberMetadataValue
    | ConsumerGroupTargetAssignmentMetadataValue
    | ConsumerGroupTargetAssignmentMemberValue
    | ConsumerGroupCurrentMemberAssignmentValue
    | ConsumerGroupRegularExpressionValue
)

ConsumerGroupRecord: TypeAlias = tuple[ConsumerGroupKey, ConsumerGroupValue | None]
"""Key and value; a value of None is a tombstone."""

_RECORD_TYPES = RecordTypes[ConsumerGroupKey, ConsumerGroupValue](
    {
        3: (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
        4: (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
        5: (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
        6: (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
        7: (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
        8: (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
        16: (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
    }
)

encode_consumer_group_key = _RECORD_TYPES.encode_key
encode_consumer_group_value = _RECORD_TYPES.encode_value
decode_consumer_group_record = _RECORD_TYPES.decode
