"""The records of the cluster's metadata log, `__cluster_metadata`, in Kafka's schemas (KIP-631, KIP-630).

A record's value is three unsigned varints (frame version 1, record type, record version), followed by its
fields in flexible encoding; it has no key. Records are written in the newest version of Kafka 4.3, and read
in all versions. Control records open and close a snapshot, and open each leader's term; they have a control
record's key and no frame. Only the records that this broker replays are supported. Another type is refused,
because a skipped record would be lost metadata.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from barnabas.protocol import schema
from barnabas.protocol.control_record import control_key, read_control_type
from barnabas.protocol.schema import (
    Bool,
    Bytes,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Since,
    String,
    Tag,
    UInt16,
    Uuid,
)
from barnabas.protocol.varint import (
    Buffer,
    NewerVersion,
    RecordFormatError,
    read_unsigned_varint,
    unsigned_varint,
)

_FRAME_VERSION = 1
_CONTROL_VERSION = 0
_UNCHANGED = -2


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerEndpoint:
    """One listener; `security_protocol` 0 is PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL."""

    name: String
    host: String
    port: UInt16
    security_protocol: Int16


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFeature:
    name: String
    min_supported_version: Int16
    max_supported_version: Int16


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBrokerRecord:
    """A node's registration, written at each of its starts; `broker_epoch` grows with each."""

    broker_id: Int32
    is_migrating_zk_broker: Annotated[Bool, Since(2)] = False
    incarnation_id: Uuid
    broker_epoch: Int64
    end_points: tuple[BrokerEndpoint, ...]
    features: tuple[BrokerFeature, ...]
    rack: String | None
    fenced: Bool = True
    in_controlled_shutdown: Annotated[Bool, Since(1)] = False
    log_dirs: Annotated[tuple[Uuid, ...], Since(3), Tag(0)] = ()
    cordoned_log_dirs: Annotated[tuple[Uuid, ...] | None, Since(4), Tag(1)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecord:
    name: String
    topic_id: Uuid


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRecord:
    """A partition at its creation or in a snapshot; `leader` is -1 while it has none."""

    partition_id: Int32 = -1
    topic_id: Uuid
    replicas: tuple[Int32, ...]
    isr: tuple[Int32, ...]
    removing_replicas: tuple[Int32, ...] = ()
    adding_replicas: tuple[Int32, ...] = ()
    leader: Int32 = -1
    leader_recovery_state: Annotated[Int8, Tag(0)] = 0
    leader_epoch: Int32 = -1
    partition_epoch: Int32 = -1
    directories: Annotated[tuple[Uuid, ...], Since(1)] = ()
    eligible_leader_replicas: Annotated[tuple[Int32, ...] | None, Since(2), Tag(1)] = None
    last_known_elr: Annotated[tuple[Int32, ...] | None, Since(2), Tag(2)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRecord:
    """One setting of a topic (`resource_type` 2), broker (4) or group (32); a `value` of None unsets it."""

    resource_type: Int8
    resource_name: String
    name: String
    value: String | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChangeRecord:
    """A change of a partition. None means unchanged, and so do a `leader` of -2 and a recovery state of -1.

    Each change increments the partition's epoch, and a change with a leader its leader epoch.
    """

    partition_id: Int32 = -1
    topic_id: Uuid
    isr: Annotated[tuple[Int32, ...] | None, Tag(0)] = None
    leader: Annotated[Int32, Tag(1)] = _UNCHANGED
    replicas: Annotated[tuple[Int32, ...] | None, Tag(2)] = None
    removing_replicas: Annotated[tuple[Int32, ...] | None, Tag(3)] = None
    adding_replicas: Annotated[tuple[Int32, ...] | None, Tag(4)] = None
    leader_recovery_state: Annotated[Int8, Tag(5)] = -1
    directories: Annotated[tuple[Uuid, ...] | None, Since(1), Tag(8)] = None
    eligible_leader_replicas: Annotated[tuple[Int32, ...] | None, Since(2), Tag(6)] = None
    last_known_elr: Annotated[tuple[Int32, ...] | None, Since(2), Tag(7)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveTopicRecord:
    """Also removes the topic's partitions."""

    topic_id: Uuid


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureLevelRecord:
    """A feature's finalized level, 0 for none; logs and snapshots begin with that of `metadata.version`."""

    name: String
    feature_level: Int16


@dataclass(frozen=True, slots=True, kw_only=True)
class UserScramCredentialRecord:
    """The salt and the keys derived from a user's password, for one mechanism.

    `mechanism` 1 is SCRAM-SHA-256, 2 is SCRAM-SHA-512.
    """

    name: String
    mechanism: Int8
    salt: Bytes
    stored_key: Bytes
    server_key: Bytes
    iterations: Int32


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveUserScramCredentialRecord:
    name: String
    mechanism: Int8


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaEntityData:
    """A part of a quota's entity; a name of None is the default."""

    entity_type: String
    entity_name: String | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientQuotaRecord:
    """Sets one quota of an entity; with `remove`, removes it and ignores the value."""

    entity: tuple[QuotaEntityData, ...]
    key: String
    value: Float64
    remove: Bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdsRecord:
    """Allocates a block of producer ids; the next block starts with `next_producer_id`."""

    broker_id: Int32
    broker_epoch: Int64 = -1
    next_producer_id: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistrationChangeRecord:
    """A change of a registration: `fenced` is 1, or -1 for unfenced; `in_controlled_shutdown` is 1."""

    broker_id: Int32
    broker_epoch: Int64
    fenced: Annotated[Int8, Tag(0)] = 0
    in_controlled_shutdown: Annotated[Int8, Since(1), Tag(1)] = 0
    log_dirs: Annotated[tuple[Uuid, ...], Since(2), Tag(2)] = ()
    cordoned_log_dirs: Annotated[tuple[Uuid, ...] | None, Since(3), Tag(3)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoOpRecord:
    """Has no content; it moves the log's end, so that followers see a live leader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginTransactionRecord:
    """Begins records that become effective together (KIP-868)."""

    name: Annotated[String | None, Tag(0)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransactionRecord:
    """Makes the records since the start of the transaction effective."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortTransactionRecord:
    """Discards the records since the start of the transaction."""

    reason: Annotated[String | None, Tag(0)] = None


MetadataRecord = (
    RegisterBrokerRecord
    | TopicRecord
    | PartitionRecord
    | ConfigRecord
    | PartitionChangeRecord
    | RemoveTopicRecord
    | UserScramCredentialRecord
    | RemoveUserScramCredentialRecord
    | FeatureLevelRecord
    | ClientQuotaRecord
    | ProducerIdsRecord
    | BrokerRegistrationChangeRecord
    | NoOpRecord
    | BeginTransactionRecord
    | EndTransactionRecord
    | AbortTransactionRecord
)


class _RecordType(NamedTuple):
    record_class: type[MetadataRecord]
    version_max: int


_RECORD_TYPES = {
    0: _RecordType(RegisterBrokerRecord, 4),
    2: _RecordType(TopicRecord, 0),
    3: _RecordType(PartitionRecord, 2),
    4: _RecordType(ConfigRecord, 0),
    5: _RecordType(PartitionChangeRecord, 2),
    9: _RecordType(RemoveTopicRecord, 0),
    11: _RecordType(UserScramCredentialRecord, 0),
    12: _RecordType(FeatureLevelRecord, 0),
    14: _RecordType(ClientQuotaRecord, 0),
    15: _RecordType(ProducerIdsRecord, 0),
    17: _RecordType(BrokerRegistrationChangeRecord, 3),
    20: _RecordType(NoOpRecord, 0),
    22: _RecordType(RemoveUserScramCredentialRecord, 0),
    23: _RecordType(BeginTransactionRecord, 0),
    24: _RecordType(EndTransactionRecord, 0),
    25: _RecordType(AbortTransactionRecord, 0),
}
_TYPE_NUMBERS = {record_class: number for number, (record_class, _) in _RECORD_TYPES.items()}


def encode_metadata_record(record: MetadataRecord, version: int | None = None) -> bytes:
    """The value of the record in the log, in `version` or the newest version.

    ValueError if the version lacks a field that has a non-default value.
    """
    number = _TYPE_NUMBERS[type(record)]
    version = _RECORD_TYPES[number].version_max if version is None else version
    frame = unsigned_varint(_FRAME_VERSION) + unsigned_varint(number) + unsigned_varint(version)
    return frame + schema.encode(record, version)


def decode_metadata_record(value: Buffer) -> MetadataRecord:
    """The record; RecordFormatError if it is malformed, NewerVersion if its type or version is unknown."""
    frame_version, position = read_unsigned_varint(value, 0)
    number, position = read_unsigned_varint(value, position)
    version, position = read_unsigned_varint(value, position)
    record_type = _RECORD_TYPES.get(number)
    if frame_version != _FRAME_VERSION:
        raise RecordFormatError(f"A metadata record is in a frame of version {frame_version}, not 1.")
    if record_type is None:
        raise NewerVersion(f"A metadata record has the type {number}, which this broker does not know.")
    if version > record_type.version_max:
        name = record_type.record_class.__name__
        raise NewerVersion(
            f"A {name} has version {version}, and this broker understands version {record_type.version_max}."
        )
    return schema.decode(record_type.record_class, value[position:], version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Voter:
    voter_id: Int32


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderChangeMessage:
    """The first record of a leader's term: all voters, and those who voted for the leader."""

    version: Int16 = _CONTROL_VERSION
    leader_id: Int32
    voters: tuple[Voter, ...]
    granting_voters: tuple[Voter, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotHeaderRecord:
    """Opens a snapshot; the time is that of the last log record in it."""

    version: Int16 = _CONTROL_VERSION
    last_contained_log_timestamp_ms: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFooterRecord:
    """Closes a snapshot; a snapshot without it is incomplete."""

    version: Int16 = _CONTROL_VERSION


MetadataControlRecord = LeaderChangeMessage | SnapshotHeaderRecord | SnapshotFooterRecord

_CONTROL_TYPES: dict[int, type[MetadataControlRecord]] = {
    2: LeaderChangeMessage,
    3: SnapshotHeaderRecord,
    4: SnapshotFooterRecord,
}
_CONTROL_TYPE_NUMBERS = {record_class: number for number, record_class in _CONTROL_TYPES.items()}


def encode_metadata_control(record: MetadataControlRecord) -> tuple[bytes, bytes]:
    """The control record's (key, value)."""
    return control_key(_CONTROL_TYPE_NUMBERS[type(record)]), schema.encode(record, _CONTROL_VERSION)


def decode_metadata_control(key: Buffer | None, value: Buffer | None) -> MetadataControlRecord | None:
    """The record, or None for another type of control record, on which this broker's state does not depend.

    RecordFormatError if it is malformed or of a newer version.
    """
    record_class = _CONTROL_TYPES.get(read_control_type(key))
    if record_class is None:
        return None
    if value is None or int.from_bytes(value[:2], "big") != _CONTROL_VERSION:
        raise RecordFormatError(f"{record_class.__name__} has no value of version {_CONTROL_VERSION}.")
    return schema.decode(record_class, value, _CONTROL_VERSION)
