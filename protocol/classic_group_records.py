"""The records of classic groups and committed offsets in `__consumer_offsets`, in Kafka's schemas.

Keys have the types 0 and 1 (an offset; brokers before 0.9 wrote 0, which is read like 1) and 2 (a group).
Values are read in the versions 0 to 4. Groups are written in version 3, offsets in version 4, or in version 1
if the offset has an expiry time of its own, as in Apache Kafka 4.3. `record_prefix` has the bytes before each
key and value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from barnabas.protocol import schema
from barnabas.protocol.record_prefix import PREFIX_BYTES, prefix, read_prefix
from barnabas.protocol.schema import Bool, Bytes, Int32, Int64, Since, String, Tag, Uuid
from barnabas.protocol.varint import Buffer, RecordFormatError

NO_TIMESTAMP = -1
NO_TOPIC_ID = UUID(int=0)

_LEGACY_OFFSET, _OFFSET, _GROUP = 0, 1, 2
_GROUP_VERSION = 3
_OFFSET_VERSION, _EXPIRING_OFFSET_VERSION = 4, 1
_FLEXIBLE_VERSION = 4
_VERSION_MAX = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitKey:
    group: String
    topic: String
    partition: Int32


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitValue:
    """Times are wall-clock times; `expire_timestamp_ms` is -1 if the broker's retention decides.

    `keeps_ranges` is Barnabas's: ranges beyond the offset that were committed individually stay committed.
    After any other record of an offset they no longer count.
    """

    offset: Int64
    leader_epoch: Annotated[Int32, Since(3)] = -1
    metadata: String
    commit_timestamp_ms: Int64
    expire_timestamp_ms: Int64 = NO_TIMESTAMP
    topic_id: Annotated[Uuid, Since(4), Tag(0)] = NO_TOPIC_ID
    keeps_ranges: Annotated[Bool, Since(4), Tag(10_000)] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _OffsetCommitValueWithoutExpiry:
    """The fields of every version except 1."""

    offset: Int64
    leader_epoch: Annotated[Int32, Since(3)] = -1
    metadata: String
    commit_timestamp_ms: Int64
    topic_id: Annotated[Uuid, Since(4), Tag(0)] = NO_TOPIC_ID
    keeps_ranges: Annotated[Bool, Since(4), Tag(10_000)] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMetadataKey:
    group: String


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberMetadata:
    """One member; `subscription` is its metadata for the group's protocol."""

    member_id: String
    group_instance_id: Annotated[String | None, Since(3)] = None
    client_id: String
    client_host: String
    rebalance_timeout_ms: Annotated[Int32, Since(1)] = -1
    session_timeout_ms: Int32
    subscription: Bytes
    assignment: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMetadataValue:
    """A group's generation when it became stable or empty; an empty group has no protocol and no leader."""

    protocol_type: String
    generation: Int32
    protocol: String | None
    leader: String | None
    current_state_timestamp_ms: Annotated[Int64, Since(2)] = NO_TIMESTAMP
    members: tuple[MemberMetadata, ...]


ClassicKey = OffsetCommitKey | GroupMetadataKey
ClassicValue = OffsetCommitValue | GroupMetadataValue
OffsetRecord = tuple[OffsetCommitKey, OffsetCommitValue | None]
ClassicGroupRecord = tuple[GroupMetadataKey, GroupMetadataValue | None]
"""Key and value; a value of None is a tombstone."""


def encode_classic_key(key: ClassicKey) -> bytes:
    """The record's key, with its type in front."""
    number = _OFFSET if isinstance(key, OffsetCommitKey) else _GROUP
    return prefix(number) + schema.encode(key, 0, flexible=False)


def encode_classic_value(value: ClassicValue) -> bytes:
    """The record's value, with its version in front."""
    if isinstance(value, GroupMetadataValue):
        return prefix(_GROUP_VERSION) + schema.encode(value, _GROUP_VERSION, flexible=False)
    if value.expire_timestamp_ms != NO_TIMESTAMP:
        # Version 1 lacks the other fields; only old clients, which do not send them, give an expiry time.
        plain = OffsetCommitValue(
            offset=value.offset,
            metadata=value.metadata,
            commit_timestamp_ms=value.commit_timestamp_ms,
            expire_timestamp_ms=value.expire_timestamp_ms,
        )
        version = _EXPIRING_OFFSET_VERSION
        return prefix(version) + schema.encode(plain, version, flexible=False)
    without_expiry = _OffsetCommitValueWithoutExpiry(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp_ms=value.commit_timestamp_ms,
        topic_id=value.topic_id,
        keeps_ranges=value.keeps_ranges,
    )
    return prefix(_OFFSET_VERSION) + schema.encode(without_expiry, _OFFSET_VERSION)


def decode_classic_record(key: Buffer, value: Buffer | None) -> OffsetRecord | ClassicGroupRecord | None:
    """Key and value (None for a tombstone) of a record, or None if the type is not a classic group's.

    RecordFormatError if either is malformed, or if the value has a version newer than Barnabas knows.
    """
    number = read_prefix(key)
    body = key[PREFIX_BYTES:]
    if number == _GROUP:
        group = schema.decode(GroupMetadataKey, body, 0, flexible=False)
        return group, None if value is None else _decode(GroupMetadataValue, value, _version(group, value))
    if number in (_LEGACY_OFFSET, _OFFSET):
        offset = schema.decode(OffsetCommitKey, body, 0, flexible=False)
        return offset, None if value is None else _decode_offset(value, _version(offset, value))
    return None


def _version(key: ClassicKey, value: Buffer) -> int:
    version = read_prefix(value)
    if not 0 <= version <= _VERSION_MAX:
        raise RecordFormatError(f"The value of a {type(key).__name__} has the version {version}.")
    return version


def _decode_offset(value: Buffer, version: int) -> OffsetCommitValue:
    if version == _EXPIRING_OFFSET_VERSION:
        return _decode(OffsetCommitValue, value, version)
    read = _decode(_OffsetCommitValueWithoutExpiry, value, version)
    return OffsetCommitValue(
        offset=read.offset,
        leader_epoch=read.leader_epoch,
        metadata=read.metadata,
        commit_timestamp_ms=read.commit_timestamp_ms,
        topic_id=read.topic_id,
        keeps_ranges=read.keeps_ranges,
    )


def _decode(value_class: type[schema.Record], value: Buffer, version: int) -> schema.Record:
    return schema.decode(value_class, value[PREFIX_BYTES:], version, flexible=version >= _FLEXIBLE_VERSION)
