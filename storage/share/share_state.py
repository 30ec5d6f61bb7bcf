"""Distinguishes share state from other batches, and reads the fields of its share index entry from a batch.

Share state is in control batches without a producer id, with records of type 5 or 6. A control batch with a
producer id is a transaction's marker, which consumers see. One without records is the mark of share state
that was cleaned away. A control batch with records of another type counts as data, so that no unknown batch
is hidden. `protocol.control_record` and the share image define the meaning of the records.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.control_record import (
    VALUE_START_BYTES,
    ControlType,
    ShareCheckpoint,
    ShareDelta,
    decode_control_record,
    read_control_type,
    read_version,
)
from barnabas.protocol.record_batch import CONTROL_FLAG, HEADER_BYTES, BatchHeader, read_header
from barnabas.protocol.records import iterate_records
from barnabas.protocol.varint import (
    Buffer,
    NewerVersion,
    RecordFormatError,
    read_unsigned_varint,
    read_zigzag_varint,
)
from barnabas.storage.format.cleaned_mark import is_mark
from barnabas.storage.format.share_index import CLEANED
from barnabas.storage.segments.control_batch import ControlBatch

_SHARE_TYPES: Final = (ControlType.SHARE_CHECKPOINT, ControlType.SHARE_DELTA)
_UNKNOWN_GROUP: Final = ""
"""The group of share state with an unreadable group id. No real group has this id."""
_FLAGS_DISTANCE: Final = 8 + 4 + 8
"""From the group id to a checkpoint's flags: incarnation, checkpoint epoch, time."""


def may_be_share_state(header: BatchHeader) -> bool:
    """Decides by the header. In a data partition no other batch has such a header."""
    return bool(header.attributes & CONTROL_FLAG) and header.producer_id < 0


def read_control_batch(batch: memoryview, header: BatchHeader) -> ControlBatch | None:
    """The fields of the index entry of a whole batch found in a log; None if it is not share state.

    Reads only up to the group id and a checkpoint's flags. If these cannot be read, the batch is share state
    of an unknown group: it is hidden from consumers, and blocks every group that needs older records. Raises
    NewerVersion for share state of a later broker, whose meaning is unknown.
    """
    data = bytes(batch)
    if is_mark(header):
        return ControlBatch(data, header.last_offset_delta, "", CLEANED, False)
    kind = int(ControlType.SHARE_DELTA)
    try:
        key, value = _first_key_and_value(data)
        kind = read_control_type(key)
        if kind not in _SHARE_TYPES:
            return None
        start, end = _group_id_span(value, header.base_offset)
        tombstone = kind == ControlType.SHARE_CHECKPOINT and value[end + _FLAGS_DISTANCE] & 1 == 1
        group_id = _decoded(value[start:end], header.base_offset)
    except NewerVersion:
        raise
    except RecordFormatError:
        return ControlBatch(data, header.last_offset_delta, _UNKNOWN_GROUP, kind, False)
    return ControlBatch(data, header.last_offset_delta, group_id, kind, tombstone)


def read_group_id(batch: bytes) -> str:
    """The group id in a batch of share state; RecordFormatError if it cannot be read.

    Reads only up to the group id, in a batch of any size.
    """
    offset = read_header(batch).base_offset
    _, value = _first_key_and_value(batch)
    start, end = _group_id_span(value, offset)
    return _decoded(value[start:end], offset)


def _group_id_span(value: bytes, offset: int) -> tuple[int, int]:
    """(start, end) of the group id in the value of the record at `offset`."""
    read_version(value)
    length, start = read_unsigned_varint(value, VALUE_START_BYTES)
    end = start + length - 1
    if not start <= end < len(value) - _FLAGS_DISTANCE:
        raise RecordFormatError(f"A share control record at {offset} is cut short.")
    return start, end


def _decoded(group_id: bytes, offset: int) -> str:
    try:
        return group_id.decode()
    except UnicodeDecodeError as error:
        raise RecordFormatError(f"The share control record at {offset} names no group.") from error


def _first_key_and_value(data: bytes) -> tuple[bytes, bytes]:
    """The key and the value of the first record in an uncompressed batch; cut short if the batch is."""
    _, position = read_zigzag_varint(data, HEADER_BYTES)
    _, position = read_zigzag_varint(data, position + 1)
    _, position = read_zigzag_varint(data, position)
    key_bytes, position = read_zigzag_varint(data, position)
    key = data[position : position + key_bytes]
    value_bytes, position = read_zigzag_varint(data, position + key_bytes)
    return key, data[position : position + value_bytes]


def decode_share_record(batch: Buffer) -> tuple[int, ShareCheckpoint | ShareDelta]:
    """(offset, record) of a control batch with one record; RecordFormatError if it is not share state."""
    record = next(iterate_records(batch), None)
    decoded = None if record is None else decode_control_record(record.key, record.value)
    if record is None or decoded is None:
        raise RecordFormatError("It holds no share state.")
    return record.offset, decoded
