"""Walks over the batches of a log and collects the control records of share groups, packed by group.

A *pack* holds control records of one group as they lie in the log, ascending, each with 17 bytes in front:

    offset i64, leader_epoch i32, type i8 (5 checkpoint, 6 delta), length u32, then the record's value

It also collects the runs of offsets without data: control batches of share groups, and marks of cleaned runs,
which are counted, too. It decodes only the group's name; `control_columns` decodes the values. This is the
pure twin of the native `walk`, equal to it byte by byte.

It computes checksums only of control batches, because the audit uses nothing but the length of data batches.
"""

from __future__ import annotations

import struct
from array import array
from typing import Final

from barnabas.protocol.control_record import ControlType, read_control_type
from barnabas.protocol.record_batch import (
    COMPRESSION_MASK,
    CONTROL_FLAG,
    HEADER_BYTES,
    MAGIC,
    BatchHeader,
    is_checksum_valid,
    read_header,
)
from barnabas.protocol.varint import RecordFormatError, read_unsigned_varint, read_zigzag_varint

ENTRY_HEAD: Final = struct.Struct(">qibI")
"""Offset, leader epoch, type and length in front of each value of a pack."""

SHARE_TYPES: Final = (ControlType.SHARE_CHECKPOINT, ControlType.SHARE_DELTA)
_VERSION_AND_GUARD_BYTES: Final = 5


class Pack:
    """Control records of one group: `payload` as above, the first and last offset, and their number."""

    __slots__ = ("first_offset", "last_offset", "payload", "record_count")

    def __init__(self, first_offset: int) -> None:
        self.first_offset = first_offset
        self.last_offset = first_offset
        self.record_count = 0
        self.payload = bytearray()


class BadBatch(Exception):  # noqa: N818  named as the condition
    """The batch at `position` is damaged. `next_position` is behind it, -1 if that is unknown."""

    def __init__(self, position: int, offset: int, next_position: int, reason: str) -> None:
        super().__init__(reason)
        self.position = position
        self.offset = offset
        self.next_position = next_position
        self.reason = reason


class Found:
    """The result of a walk: packs by the group's name in UTF-8, and flat pairs of (first, last) offset of the
    runs without data, neighbours as one; `mark_count` of them are marks.
    """

    __slots__ = ("mark_count", "packs", "runs")

    def __init__(self) -> None:
        self.packs: dict[bytes, Pack] = {}
        self.runs = array("q")
        self.mark_count = 0


def walk(buffer: bytes, start: int, end: int, found: Found) -> int:
    """Takes the batches that begin in [start, end); control batches must end there, too.

    Returns the position behind the last taken batch, which may be beyond `end` for a data batch. If the next
    batch is cut short, or zeros, that is its position. Raises `BadBatch` after it has taken all batches
    before the damaged one.
    """
    position = start
    while end - position >= HEADER_BYTES:
        header = read_header(buffer, position)
        if header.base_offset == header.batch_length == header.magic == 0:
            return position
        next_position = position + header.size_bytes
        _check_header(position, header)
        if header.attributes & CONTROL_FLAG and header.producer_id < 0:
            if next_position > end:
                return position
            _take_control_batch(buffer, position, header, found)
        position = next_position
    return position


def _check_header(position: int, header: BatchHeader) -> None:
    if header.magic != MAGIC or header.size_bytes < HEADER_BYTES or header.last_offset_delta < 0:
        raise BadBatch(position, header.base_offset, -1, "there is no batch")


def _take_control_batch(buffer: bytes, position: int, header: BatchHeader, found: Found) -> None:
    next_position = position + header.size_bytes
    try:
        if not is_checksum_valid(buffer, position, header):
            raise RecordFormatError("the checksum doesn't match the bytes")
        if header.record_count == 0:
            _add_run(found.runs, header.base_offset, header.last_offset)
            found.mark_count += 1
            return
        control_type, value = _read_record(buffer[position:next_position], header)
        if control_type not in SHARE_TYPES:
            return
        group = _read_group(value)
    except (RecordFormatError, IndexError, struct.error, UnicodeDecodeError) as error:
        raise BadBatch(position, header.base_offset, next_position, _reason(error)) from None
    _add_run(found.runs, header.base_offset, header.last_offset)
    pack = found.packs.get(group)
    if pack is None:
        pack = found.packs[group] = Pack(header.base_offset)
    pack.last_offset = header.base_offset
    pack.record_count += 1
    pack.payload += ENTRY_HEAD.pack(header.base_offset, header.leader_epoch, control_type, len(value)) + value


def _reason(error: Exception) -> str:
    return str(error) if str(error).startswith("the checksum") else "the control record is malformed"


def _read_record(batch: bytes, header: BatchHeader) -> tuple[int, bytes]:
    """(type, value) of the only record of a control batch."""
    if header.record_count != 1 or header.attributes & COMPRESSION_MASK:
        raise RecordFormatError("a control batch holds one record, uncompressed")
    _, position = read_zigzag_varint(batch, HEADER_BYTES)
    _, position = read_zigzag_varint(batch, position + 1)
    _, position = read_zigzag_varint(batch, position)
    key, position = _read_bytes(batch, position)
    value, _ = _read_bytes(batch, position)
    return read_control_type(key), value


def _read_bytes(batch: bytes, position: int) -> tuple[bytes, int]:
    size, position = read_zigzag_varint(batch, position)
    if not 0 <= size <= len(batch) - position:
        raise RecordFormatError("a length reaches beyond the batch")
    return batch[position : position + size], position + size


def _read_group(value: bytes) -> bytes:
    size, position = read_unsigned_varint(value, _VERSION_AND_GUARD_BYTES)
    if not 0 < size <= len(value) - position + 1:
        raise RecordFormatError("a length reaches beyond the record")
    group = value[position : position + size - 1]
    group.decode()
    return group


def _add_run(runs: array[int], first_offset: int, last_offset: int) -> None:
    """Neighbours become one."""
    if runs and runs[-1] + 1 == first_offset:
        runs[-1] = last_offset
    else:
        runs.append(first_offset)
        runs.append(last_offset)
