"""The records of one batch's body, read in plain Python for the decoder in `_python`.

It reads an unwanted record only as far as its offset and time, and headers only for the column `headers`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from barnabas.pipeline.decoding import errors
from barnabas.pipeline.decoding._unpacking import RefusedError
from barnabas.pipeline.decoding.bounds import OffsetRange, first_range
from barnabas.protocol.record_batch import BatchHeader
from barnabas.protocol.record_walk import faults
from barnabas.protocol.record_walk.cursor import BytesCursor, RecordCursor, RecordFaultError

_INT64_MIN: Final = -(2**63)
_INT64_MAX: Final = 2**63 - 1
_MICROSECONDS: Final = 1000
_TIMESTAMP_MS_MAX: Final = _INT64_MAX // _MICROSECONDS


class Wanted(NamedTuple):
    """The records to take: in `ranges`, between the two `timestamps` (ms, inclusive); and their columns."""

    ranges: Sequence[OffsetRange]
    timestamps: tuple[int, int]
    columns: frozenset[str]

    def touches(self, header: BatchHeader) -> bool:
        """Whether any of the batch's offsets is wanted."""
        index = first_range(self.ranges, header.base_offset)
        return index < len(self.ranges) and self.ranges[index][0] <= header.last_offset


class Row(NamedTuple):
    """A taken record, with the names of the columns; `timestamp` is in microseconds."""

    offset: int
    timestamp: int
    timestampType: int  # noqa: N815
    key: bytes | None
    value: bytes | None
    headers: list[tuple[bytes, bytes | None]]
    deliveryCount: int  # noqa: N815


def read_rows(body: bytes, header: BatchHeader, wanted: Wanted) -> Iterator[Row]:
    """The wanted records. Raises RefusedError, also for bytes behind the last record."""
    cursor, previous_delta = BytesCursor(body, 0, len(body)), -1
    for index in range(header.record_count):
        try:
            record = RecordCursor(cursor)
            if not previous_delta < record.offset_delta <= header.last_offset_delta:
                raise RecordFaultError(faults.OFFSET_ASTRAY)
            row = _read_row(record, header, wanted)
        except RecordFaultError as error:
            raise RefusedError(errors.wrong_record(index, error.fault)) from None
        if row is not None:
            yield row
        previous_delta = record.offset_delta
    if cursor.left:
        raise RefusedError(errors.wrong_end(cursor.left))


def _read_row(record: RecordCursor, header: BatchHeader, wanted: Wanted) -> Row | None:
    """The rest of a record, None if it isn't wanted."""
    offset = header.base_offset + record.offset_delta
    timestamp_ms = header.max_timestamp_ms
    if not header.log_append_time:
        timestamp_ms = header.base_timestamp_ms + record.timestamp_delta_ms
        if not _INT64_MIN <= timestamp_ms <= _INT64_MAX:
            raise RecordFaultError(faults.TIME_TOO_FAR)
    index = first_range(wanted.ranges, offset)
    if index == len(wanted.ranges) or offset < wanted.ranges[index][0]:
        return None
    if not wanted.timestamps[0] <= timestamp_ms <= wanted.timestamps[1]:
        return None
    if "timestamp" in wanted.columns and abs(timestamp_ms) > _TIMESTAMP_MS_MAX:
        raise RecordFaultError(faults.TIME_TOO_FAR)
    return Row(
        offset,
        timestamp_ms * _MICROSECONDS,
        int(header.log_append_time),
        record.nullable(),
        record.nullable(),
        record.headers() if "headers" in wanted.columns else [],
        wanted.ranges[index][2],
    )
