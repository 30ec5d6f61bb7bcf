"""The control records of a pack as columns: a row per record, and a row per recorded range.

Ten million acknowledgements are ten million deltas, so a native module decodes them if it was built, and
otherwise its twin in this file; both give the same result for any bytes. Checkpoints are rare and stay
undecoded, for `decode_control_record`. A malformed delta is a row without ranges, of kind `MALFORMED`.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Final

from barnabas.pipeline.audit.control_walk import ENTRY_HEAD
from barnabas.protocol.control_record import (
    ControlType,
    ShareCheckpoint,
    ShareDelta,
    control_key,
    decode_control_record,
)
from barnabas.protocol.varint import RecordFormatError

CHECKPOINT: Final = int(ControlType.SHARE_CHECKPOINT)
DELTA: Final = int(ControlType.SHARE_DELTA)
MALFORMED: Final = 0
NO_MEMBER: Final = -1


def _int64s() -> array[int]:
    return array("q")


def _int32s() -> array[int]:
    return array("i")


def _int16s() -> array[int]:
    return array("h")


def _int8s() -> array[int]:
    return array("b")


@dataclass(slots=True)
class ControlColumns:
    """Control records of one group, ascending by offset, and the ranges of their deltas, flat.

    `state_ends[i]` is the index where the ranges of record i end and those of the next begin;
    `record_indexes` has the record of each range. A range's `members` is an index of `member_names`, or
    `NO_MEMBER`.
    """

    payload: bytes
    offsets: array[int] = field(default_factory=_int64s)
    leader_epochs: array[int] = field(default_factory=_int32s)
    kinds: array[int] = field(default_factory=_int8s)
    value_starts: array[int] = field(default_factory=_int64s)
    value_ends: array[int] = field(default_factory=_int64s)
    incarnations: array[int] = field(default_factory=_int64s)
    checkpoint_epochs: array[int] = field(default_factory=_int32s)
    decided_at_ms: array[int] = field(default_factory=_int64s)
    back_offsets: array[int] = field(default_factory=_int64s)
    state_ends: array[int] = field(default_factory=_int64s)
    record_indexes: array[int] = field(default_factory=_int64s)
    first_offsets: array[int] = field(default_factory=_int64s)
    last_offsets: array[int] = field(default_factory=_int64s)
    states: array[int] = field(default_factory=_int8s)
    delivery_counts: array[int] = field(default_factory=_int16s)
    causes: array[int] = field(default_factory=_int8s)
    members: array[int] = field(default_factory=_int32s)
    member_names: list[str] = field(default_factory=list[str])

    def checkpoint(self, index: int) -> ShareCheckpoint:
        """The checkpoint in row `index`. Raises RecordFormatError if it cannot be read."""
        record = decode_control_record(control_key(CHECKPOINT), self._value(index))
        assert isinstance(record, ShareCheckpoint), record
        return record

    def malformed_reason(self, index: int) -> str:
        """The error in the delta of row `index`."""
        try:
            decode_control_record(control_key(DELTA), self._value(index))
        except RecordFormatError as error:
            return str(error)
        return "A share control record cannot be read."

    def _value(self, index: int) -> bytes:
        return self.payload[self.value_starts[index] : self.value_ends[index]]


def fill_columns(columns: ControlColumns) -> None:
    """Fills empty columns from a complete pack. The twin of the native function."""
    payload = columns.payload
    member_numbers: dict[str, int] = {}
    position = 0
    while position < len(payload):
        offset, leader_epoch, kind, size_bytes = ENTRY_HEAD.unpack_from(payload, position)
        start = position + ENTRY_HEAD.size
        position = start + size_bytes
        delta = None
        if kind == DELTA:
            delta = decode_delta(payload[start:position])
            kind = MALFORMED if delta is None else DELTA
        columns.offsets.append(offset)
        columns.leader_epochs.append(leader_epoch)
        columns.kinds.append(kind)
        columns.value_starts.append(start)
        columns.value_ends.append(position)
        columns.incarnations.append(0 if delta is None else delta.group_incarnation)
        columns.checkpoint_epochs.append(0 if delta is None else delta.checkpoint_epoch)
        columns.decided_at_ms.append(0 if delta is None else delta.decided_at_ms)
        columns.back_offsets.append(0 if delta is None else delta.back_offset)
        if delta is not None:
            _fill_states(columns, delta, member_numbers)
        columns.state_ends.append(len(columns.states))
    columns.member_names.extend(member_numbers)


def decode_delta(value: bytes) -> ShareDelta | None:
    """The delta in a value, or None if it is malformed."""
    try:
        record = decode_control_record(control_key(DELTA), value)
    except RecordFormatError:
        return None
    assert isinstance(record, ShareDelta), record
    return record


def _fill_states(columns: ControlColumns, delta: ShareDelta, member_numbers: dict[str, int]) -> None:
    for first, last, state, count, cause, member, _ in delta.states:
        columns.record_indexes.append(len(columns.offsets) - 1)
        columns.first_offsets.append(first)
        columns.last_offsets.append(last)
        columns.states.append(state)
        columns.delivery_counts.append(count)
        columns.causes.append(cause)
        number = NO_MEMBER if member is None else member_numbers.setdefault(member, len(member_numbers))
        columns.members.append(number)
