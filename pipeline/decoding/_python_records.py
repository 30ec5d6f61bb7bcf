"""The records of one batch's body, read in plain Python for the decoder in `_python`.

A record, lengths and deltas as zigzag varints and -1 for null:

    length, attributes i8, timestamp_delta, offset_delta, key length and key, value length and value,
    header count, then for each header: length and name, length and value

A record that isn't wanted is read as far as its offset and time. Headers are looked at only if they are
asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from barnabas.pipeline.decoding import errors
from barnabas.pipeline.decoding._unpacking import RefusedError
from barnabas.pipeline.decoding.bounds import OffsetRange, first_range
from barnabas.protocol.record_batch import BatchHeader

_INT64_MIN: Final = -(2**63)
_INT64_MAX: Final = 2**63 - 1
_MICROSECONDS: Final = 1000
_TIMESTAMP_MS_MAX: Final = _INT64_MAX // _MICROSECONDS
_VARINT_BITS_MAX: Final = 64


class Wanted(NamedTuple):
    """What is taken: records in `ranges`, between the two `timestamps` (ms, inclusive), and which columns."""

    ranges: Sequence[OffsetRange]
    timestamps: tuple[int, int]
    columns: frozenset[str]

    def touches(self, header: BatchHeader) -> bool:
        """Whether any of the batch's offsets is wanted."""
        index = first_range(self.ranges, header.base_offset)
        return index < len(self.ranges) and self.ranges[index][0] <= header.last_offset


class Row(NamedTuple):
    """A record that is taken, by the names of the columns; `timestamp` is in microseconds."""

    offset: int
    timestamp: int
    timestampType: int  # noqa: N815
    key: bytes | None
    value: bytes | None
    headers: list[tuple[bytes, bytes | None]]
    deliveryCount: int  # noqa: N815


class _FaultError(Exception):
    """A number of `RECORD_FAULTS`."""


def read_rows(body: bytes, header: BatchHeader, wanted: Wanted) -> Iterator[Row]:
    """The wanted records. Raises RefusedError, also for bytes behind the last record."""
    position, previous_delta = 0, -1
    for index in range(header.record_count):
        try:
            record = _Record(body, position)
            timestamp_delta_ms, offset_delta = record.varint(), record.varint()
            if not previous_delta < offset_delta <= header.last_offset_delta:
                raise _FaultError(errors.OFFSET_ASTRAY)
            row = _read_row(record, header, header.base_offset + offset_delta, timestamp_delta_ms, wanted)
        except _FaultError as fault:
            raise RefusedError(errors.wrong_record(index, fault.args[0])) from None
        if row is not None:
            yield row
        position, previous_delta = record.end, offset_delta
    if position != len(body):
        raise RefusedError(errors.wrong_end(len(body) - position))


class _Record:
    """A place in the record that begins at `position`, behind its attributes; never past its `end`."""

    def __init__(self, body: bytes, position: int) -> None:
        self._body, self._position, self.end = body, position, len(body)
        length = self.varint()
        if not 0 <= length <= self.end - self._position:
            raise _FaultError(errors.FIELD_CUT)
        self.end = self._position + length
        self._position += 1

    @property
    def left(self) -> int:
        return self.end - self._position

    def varint(self) -> int:
        value = 0
        for shift in range(0, _VARINT_BITS_MAX + 6, 7):
            if self._position >= self.end:
                raise _FaultError(errors.FIELD_CUT)
            byte = self._body[self._position]
            self._position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80 and value >> _VARINT_BITS_MAX == 0:
                return (value >> 1) ^ -(value & 1)
        raise _FaultError(errors.INTEGER_TOO_LONG)

    def nullable(self) -> bytes | None:
        length = self.varint()
        if length < 0:
            return None
        if length > self.left:
            raise _FaultError(errors.FIELD_CUT)
        self._position += length
        return self._body[self._position - length : self._position]


def _read_row(
    record: _Record, header: BatchHeader, offset: int, timestamp_delta_ms: int, wanted: Wanted
) -> Row | None:
    """The rest of a record, None if it isn't wanted."""
    timestamp_ms = header.max_timestamp_ms
    if not header.log_append_time:
        timestamp_ms = header.base_timestamp_ms + timestamp_delta_ms
        if not _INT64_MIN <= timestamp_ms <= _INT64_MAX:
            raise _FaultError(errors.TIME_TOO_FAR)
    index = first_range(wanted.ranges, offset)
    if index == len(wanted.ranges) or offset < wanted.ranges[index][0]:
        return None
    if not wanted.timestamps[0] <= timestamp_ms <= wanted.timestamps[1]:
        return None
    if "timestamp" in wanted.columns and abs(timestamp_ms) > _TIMESTAMP_MS_MAX:
        raise _FaultError(errors.TIME_TOO_FAR)
    return Row(
        offset,
        timestamp_ms * _MICROSECONDS,
        int(header.log_append_time),
        record.nullable(),
        record.nullable(),
        _read_headers(record) if "headers" in wanted.columns else [],
        wanted.ranges[index][2],
    )


def _read_headers(record: _Record) -> list[tuple[bytes, bytes | None]]:
    count = record.varint()
    if not 0 <= count <= record.left:
        raise _FaultError(errors.FIELD_CUT)
    headers: list[tuple[bytes, bytes | None]] = []
    for _ in range(count):
        name = record.nullable()
        if name is None:
            raise _FaultError(errors.HEADER_WITHOUT_NAME)
        headers.append((name, record.nullable()))
    if record.left:
        raise _FaultError(errors.BYTES_BEHIND)
    return headers
