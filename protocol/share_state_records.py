"""The records of share-partitions in `__share_group_state`, in Kafka's schemas of KIP-932 and KIP-1226.

A key is an int16 record type (0 snapshot, 1 update) and the fields, without compact lengths. A value is an
int16 version, 0 in both, and the fields in flexible encoding. A snapshot is the whole state, an update the
changes since. A snapshot without a value (a tombstone) deletes the share-partition of the key. The share
coordinator interprets the records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from barnabas.protocol import schema
from barnabas.protocol.record_prefix import PREFIX_BYTES, prefix, read_prefix
from barnabas.protocol.schema import Bytes, Int8, Int16, Int32, Int64, String, Tag, Uuid
from barnabas.protocol.varint import Buffer, RecordFormatError

_VALUE_VERSION = 0
_SUBJECT = "A share state record"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareSnapshotKey:
    group_id: String
    topic_id: Uuid
    partition: Int32


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareUpdateKey:
    group_id: String
    topic_id: Uuid
    partition: Int32


@dataclass(frozen=True, slots=True, kw_only=True)
class StateBatchValue:
    """Offsets, both inclusive, and their state: 0 Available, 2 Acknowledged, 3 Archiving, 4 Archived.

    `condition` is an extension: the encoded condition of the state (`delivery_state`), empty without one.
    """

    first_offset: Int64
    last_offset: Int64
    delivery_state: Int8
    delivery_count: Int16
    condition: Annotated[Bytes, Tag(10_000)] = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareSnapshotValue:
    """`delivery_complete_count` counts final records at or above the start offset, -1 if unknown.

    Timestamps are in ms of wall-clock time.
    """

    snapshot_epoch: Int32
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    create_timestamp_ms: Int64
    write_timestamp_ms: Int64
    state_batches: tuple[StateBatchValue, ...]
    delivery_complete_count: Annotated[Int32, Tag(0)] = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareUpdateValue:
    """`start_offset` is -1 if it has not changed."""

    snapshot_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    state_batches: tuple[StateBatchValue, ...]
    delivery_complete_count: Annotated[Int32, Tag(0)] = -1


ShareStateKey = ShareSnapshotKey | ShareUpdateKey
ShareStateValue = ShareSnapshotValue | ShareUpdateValue
ShareStateRecord = tuple[ShareStateKey, ShareStateValue | None]
"""Key and value; a value of None is a tombstone."""

_RECORD_TYPES: dict[int, tuple[type[ShareStateKey], type[ShareStateValue]]] = {
    0: (ShareSnapshotKey, ShareSnapshotValue),
    1: (ShareUpdateKey, ShareUpdateValue),
}
_TYPE_NUMBERS = {key_class: number for number, (key_class, _) in _RECORD_TYPES.items()}


def encode_share_state_record(record: ShareStateRecord) -> tuple[bytes, bytes | None]:
    """Key and value in the form of the log."""
    key, value = record
    encoded_key = prefix(_TYPE_NUMBERS[type(key)]) + schema.encode(key, 0, flexible=False)
    if value is None:
        return encoded_key, None
    return encoded_key, prefix(_VALUE_VERSION) + schema.encode(value, _VALUE_VERSION)


def decode_share_state_record(key: Buffer, value: Buffer | None) -> ShareStateRecord | None:
    """The record, or None if its type is not a share-partition's.

    RecordFormatError if it is malformed, or if its value has a version newer than Barnabas knows.
    """
    key_class, value_class = _RECORD_TYPES.get(read_prefix(key, _SUBJECT), (None, None))
    if key_class is None or value_class is None:
        return None
    decoded_key = schema.decode(key_class, key[PREFIX_BYTES:], 0, flexible=False)
    if value is None:
        return decoded_key, None
    version = read_prefix(value, _SUBJECT)
    if version != _VALUE_VERSION:
        raise RecordFormatError(f"{value_class.__name__} has the version {version}.")
    return decoded_key, schema.decode(value_class, value[PREFIX_BYTES:], version)


def share_state_kind(key: Buffer) -> tuple[bool, bytes] | None:
    """(whether it is an update, the bytes that identify the share-partition) of an encoded key.

    None if the type is not a share-partition's. The key is not decoded.
    """
    number = read_prefix(key, _SUBJECT)
    return (number == 1, bytes(key[PREFIX_BYTES:])) if number in _RECORD_TYPES else None
