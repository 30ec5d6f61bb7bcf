"""Control records that hold a share partition's delivery state in the partition's own log.

A SHARE_CHECKPOINT (type 5) is the whole state of one group on one partition. A SHARE_DELTA (type 6) is the
change by one append; its `back_offset` links it to the previous control record of the same checkpoint epoch.
The records follow the "Recovery and log cleaning" draft beside KIP-932, in a layout of their own: big endian,
with lengths and counts as in Kafka's flexible versions (unsigned varint of n + 1):

    key         version i16 = 0, type i16
    value       version i16 = 1 or 2, guard 01 00 00, group_id string, group_incarnation i64,
                checkpoint_epoch i32, decided_at_ms i64, then
    checkpoint  flags i8 (1 = deleted), state_epoch i32, leader_epoch i32, start_offset i64, end_offset i64
                (exclusive), delivery_complete_count i32, members array of string, states array, tagged fields
    delta       back_offset i64, members array of string, states array, tagged fields
    state       base_offset i64, last_offset i64 (inclusive), state i8, delivery_count i16, cause i8,
                member i16 (index into members, -1 for none), tagged fields (version 2: 0 is the condition)

Version 2 is written only for records that need it: those with a condition (`delivery_state`), or with a cause
behind ADMIN. A broker that knows only version 1 refuses them.

Apache Kafka uses both types with another meaning, but only in its metadata log. The guard bytes make its dump
tool read an empty record of that kind and continue. Unknown tagged fields are skipped. `storage.format`
replays the states; the log's index lists the batches that hold them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple

from crc32c import crc32c

from barnabas.protocol.delivery_state import (
    Cause,
    Condition,
    RecordState,
    StateRange,
    decode_condition,
    encode_condition,
    fits,
)
from barnabas.protocol.record_batch import CONTROL_FLAG, CRC_START, LOG_OVERHEAD, MAGIC
from barnabas.protocol.varint import (
    Buffer,
    NewerVersion,
    RecordFormatError,
    read_unsigned_varint,
    unsigned_varint,
    zigzag_varint,
)

VALUE_VERSION: Final = 2
"""The newest version that this broker understands. Version 2 added conditions."""


class ControlType(IntEnum):
    """The types of control records in a data partition."""

    ABORT = 0
    COMMIT = 1
    SHARE_CHECKPOINT = 5
    SHARE_DELTA = 6


class ShareCheckpoint(NamedTuple):
    """The whole state; `start_offset` is -1 if undecided, `end_offset` exclusive, `deleted` a tombstone."""

    group_id: str
    group_incarnation: int
    checkpoint_epoch: int
    decided_at_ms: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    end_offset: int
    delivery_complete_count: int
    states: Sequence[StateRange] = ()
    deleted: bool = False


class ShareDelta(NamedTuple):
    """One change of state; `back_offset` is the offset of the previous control record."""

    group_id: str
    group_incarnation: int
    checkpoint_epoch: int
    decided_at_ms: int
    back_offset: int
    states: Sequence[StateRange]


_KEY: Final = struct.Struct(">hh")
_GUARD: Final = b"\x01\x00\x00"
_CONDITIONS_VERSION: Final = 2
_STARTS: Final = {version: version.to_bytes(2, "big") + _GUARD for version in range(1, VALUE_VERSION + 1)}
"""The starts of the values of each version."""
_PLAIN_START, _CONDITION_START = _STARTS[1], _STARTS[_CONDITIONS_VERSION]
VALUE_START_BYTES: Final = len(_PLAIN_START)
_CHECKPOINT: Final = struct.Struct(">qiqbiiqqi")
_DELTA: Final = struct.Struct(">qiqq")
_STATE: Final = struct.Struct(">qqbhbhB")
"""The last field is the count of tagged fields: 0 when written, one byte when read."""

_DELETED_FLAG: Final = 1
_NO_MEMBER: Final = -1
_ONE_ENTRY: Final = b"\x02"
_NO_TAGS: Final = b"\x00"

_CONDITION_TAG: Final = 0
_PLAIN_CAUSE_MAX: Final = Cause.ADMIN
"""The last cause that version 1 knows."""
_ACQUIRED, _ARCHIVING = RecordState.ACQUIRED, RecordState.ARCHIVING
_STATES: Final = {int(state): state for state in RecordState if state is not RecordState.ACQUIRED}
_CAUSES: Final = {int(cause): cause for cause in Cause}


def encode_checkpoint(checkpoint: ShareCheckpoint) -> tuple[bytes, bytes]:
    """The record's (key, value)."""
    fixed = _CHECKPOINT.pack(
        checkpoint.group_incarnation,
        checkpoint.checkpoint_epoch,
        checkpoint.decided_at_ms,
        _DELETED_FLAG if checkpoint.deleted else 0,
        checkpoint.state_epoch,
        checkpoint.leader_epoch,
        checkpoint.start_offset,
        checkpoint.end_offset,
        checkpoint.delivery_complete_count,
    )
    return _CHECKPOINT_KEY, _value(checkpoint.group_id, fixed, checkpoint.states)


def encode_delta(delta: ShareDelta) -> tuple[bytes, bytes]:
    """The record's (key, value).

    It is optimised for one acknowledged range, because every reply waits for it.
    """
    group_id, incarnation, checkpoint_epoch, decided_at_ms, back_offset, states = delta
    fixed = _DELTA.pack(incarnation, checkpoint_epoch, decided_at_ms, back_offset)
    if len(states) == 1:
        base_offset, last_offset, state, count, cause, member, condition = states[0]
        if condition is None and cause <= _PLAIN_CAUSE_MAX and member is not None:
            assert state is not _ACQUIRED and state is not _ARCHIVING, states
            body = _STATE.pack(base_offset, last_offset, state, count, cause, 0, 0)
            parts = _PLAIN_START, _string(group_id), fixed, _ONE_ENTRY, _string(member), _ONE_ENTRY, body
            return _DELTA_KEY, b"".join((*parts, _NO_TAGS))
    return _DELTA_KEY, _value(group_id, fixed, states)


def _value(group_id: str, fixed: bytes, states: Sequence[StateRange]) -> bytes:
    indexes: dict[str | None, int] = {}
    encoded: list[bytes] = []
    for state in states:
        member = state.member
        index = _NO_MEMBER if member is None else indexes.setdefault(member, len(indexes))
        encoded.append(_state(state, index))
    names = [_string(member) for member in indexes if member is not None]
    counts = unsigned_varint(len(names) + 1), unsigned_varint(len(encoded) + 1)
    start = _CONDITION_START if any(map(_needs_conditions, states)) else _PLAIN_START
    return b"".join((start, _string(group_id), fixed, counts[0], *names, counts[1], *encoded, _NO_TAGS))


def _needs_conditions(state: StateRange) -> bool:
    return state.condition is not None or state.cause > _PLAIN_CAUSE_MAX


def _state(state: StateRange, member_index: int) -> bytes:
    base_offset, last_offset, record_state, delivery_count, cause, _, condition = state
    if condition is None:
        assert record_state is not _ACQUIRED and record_state is not _ARCHIVING, state
        return _STATE.pack(base_offset, last_offset, record_state, delivery_count, cause, member_index, 0)
    assert record_state is not _ACQUIRED and fits(record_state, condition), state
    encoded = _STATE.pack(base_offset, last_offset, record_state, delivery_count, cause, member_index, 1)
    data = encode_condition(condition)
    return b"".join((encoded, unsigned_varint(_CONDITION_TAG), unsigned_varint(len(data)), data))


@lru_cache(maxsize=1024)
def _string(text: str) -> bytes:
    """Groups and members recur."""
    data = text.encode()
    return unsigned_varint(len(data) + 1) + data


def control_key(control_type: int) -> bytes:
    """The key of a control record of this type."""
    return _KEY.pack(0, control_type)


_CHECKPOINT_KEY: Final = control_key(ControlType.SHARE_CHECKPOINT)
_DELTA_KEY: Final = control_key(ControlType.SHARE_DELTA)


def read_control_type(key: Buffer | None) -> int:
    """The type in a control record's key; RecordFormatError if the key is malformed."""
    if key is None or len(key) < _KEY.size:
        raise RecordFormatError("A control record's key is cut short.")
    version, control_type = _KEY.unpack_from(key)
    if version < 0:
        raise RecordFormatError(f"A control record's key has the version {version}.")
    return int(control_type)


def decode_control_record(key: Buffer | None, value: Buffer | None) -> ShareCheckpoint | ShareDelta | None:
    """The share state in a control record, or None for a record of another type.

    RecordFormatError for a value that is cut short or has an unreadable version. Skipping such a record would
    deliver completed records again.
    """
    control_type = read_control_type(key)
    if control_type not in (ControlType.SHARE_CHECKPOINT, ControlType.SHARE_DELTA):
        return None
    if value is None:
        raise RecordFormatError("A share control record has no value.")
    try:
        return _decode_value(control_type, bytes(value))
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise RecordFormatError(f"A share control record is malformed: {error}") from error


def read_version(value: bytes) -> int:
    """Raises NewerVersion for a value of a newer broker, and RecordFormatError for an invalid start."""
    version = int.from_bytes(value[:2], "big", signed=True)
    if version > VALUE_VERSION:
        raise NewerVersion(
            f"The share state has version {version}, and this broker understands version {VALUE_VERSION}: "
            "start a newer one."
        )
    if value[:VALUE_START_BYTES] != _STARTS.get(version):
        start = value[:VALUE_START_BYTES].hex()
        raise RecordFormatError(
            f"A share control record begins with {start}, not with a version from 1 to {VALUE_VERSION}."
        )
    return version


def _decode_value(control_type: int, value: bytes) -> ShareCheckpoint | ShareDelta:
    version = read_version(value)
    group_id, position = _read_string(value, VALUE_START_BYTES)
    if control_type == ControlType.SHARE_DELTA:
        incarnation, checkpoint_epoch, decided_at_ms, back_offset = _DELTA.unpack_from(value, position)
        states = _read_states(value, position + _DELTA.size, version)
        return ShareDelta(group_id, incarnation, checkpoint_epoch, decided_at_ms, back_offset, states)
    incarnation, checkpoint_epoch, decided_at_ms, flags, *fixed = _CHECKPOINT.unpack_from(value, position)
    states = _read_states(value, position + _CHECKPOINT.size, version)
    deleted = bool(flags & _DELETED_FLAG)
    return ShareCheckpoint._make(
        (group_id, incarnation, checkpoint_epoch, decided_at_ms, *fixed, states, deleted)
    )


def _read_states(value: bytes, position: int, version: int) -> tuple[StateRange, ...]:
    members, position = _read_members(value, position)
    count, position = _read_count(value, position)
    has_conditions = version >= _CONDITIONS_VERSION
    cause_max = max(Cause) if has_conditions else _PLAIN_CAUSE_MAX
    states: list[StateRange] = []
    unpack_from = _STATE.unpack_from
    for _ in range(count):
        base_offset, last_offset, state, delivery_count, cause, index, tag_count = unpack_from(
            value, position
        )
        position += _STATE.size
        condition: Condition | None = None
        if tag_count:
            tags, position = _read_tags(value, position - 1)
            if has_conditions and _CONDITION_TAG in tags:
                condition = decode_condition(tags[_CONDITION_TAG])
        if state not in _STATES or not fits(state, condition) or cause not in _CAUSES or cause > cause_max:
            raise RecordFormatError(f"A share control record names the state {state} and cause {cause}.")
        if not _NO_MEMBER <= index < len(members):
            raise RecordFormatError(f"A share control record names member {index} of {len(members)}.")
        member = None if index == _NO_MEMBER else members[int(index)]
        states.append(
            StateRange(
                base_offset, last_offset, _STATES[state], delivery_count, _CAUSES[cause], member, condition
            )
        )
    if _read_tags(value, position)[1] != len(value):
        raise RecordFormatError("A share control record has bytes after its end.")
    return tuple(states)


def _read_members(value: bytes, position: int) -> tuple[list[str], int]:
    count, position = _read_count(value, position)
    members: list[str] = []
    for _ in range(count):
        member, position = _read_string(value, position)
        members.append(member)
    return members, position


def _read_count(value: bytes, position: int) -> tuple[int, int]:
    """A length or count; zero, which means null, is never allowed."""
    count, position = read_unsigned_varint(value, position)
    if not 0 < count <= len(value) - position + 1:
        raise RecordFormatError(f"A share control record states a length of {count - 1} at {position}.")
    return count - 1, position


def _read_string(value: bytes, position: int) -> tuple[str, int]:
    size, position = _read_count(value, position)
    return value[position : position + size].decode(), position + size


def _read_tags(value: bytes, position: int) -> tuple[dict[int, bytes], int]:
    """The tagged fields, and the position behind them."""
    count, position = read_unsigned_varint(value, position)
    tags: dict[int, bytes] = {}
    for _ in range(count):
        tag, position = read_unsigned_varint(value, position)
        size, position = read_unsigned_varint(value, position)
        tags[tag] = value[position : position + size]
        position += size
    return tags, position


_RECORD_START: Final = b"\x00\x00\x00"
"""Attributes, timestamp delta and offset delta of the first record of a batch."""
_NO_HEADERS: Final = b"\x00"
_length = lru_cache(maxsize=1024)(zigzag_varint)
"""Few lengths are usual."""
_CHECKED: Final = struct.Struct(">hiqqqhii")
_UNCHECKED: Final = struct.Struct(">qiibI")


def build_control_batch(
    base_offset: int, leader_epoch: int, timestamp_ms: int, key: bytes, value: bytes
) -> bytes:
    """The control batch of one record: producer id -1, not transactional.

    It equals the result of `record_batch.build_batch` at half the cost, because each acknowledgement waits
    for one.
    """
    record = b"".join((_RECORD_START, _length(len(key)), key, _length(len(value)), value, _NO_HEADERS))
    fields = _CHECKED.pack(CONTROL_FLAG, 0, timestamp_ms, timestamp_ms, -1, -1, -1, 1)
    checked = b"".join((fields, _length(len(record)), record))
    batch_length = CRC_START - LOG_OVERHEAD + len(checked)
    return _UNCHECKED.pack(base_offset, batch_length, leader_epoch, MAGIC, crc32c(checked)) + checked
