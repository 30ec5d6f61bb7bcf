"""Offsets by time, for ListOffsets (KIP-79, KIP-734) and share groups that begin at a duration.

The time index says where to begin, the batches' headers which one it is, and only that one is decoded. Share
state has no part in it. A batch on the way that cannot be read is a CorruptBatch.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

from barnabas.protocol.record_batch import BatchHeader
from barnabas.protocol.records import iterate_records
from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.format.time_index import NO_TIMESTAMP
from barnabas.storage.log_state import LogState
from barnabas.storage.reader import Reader
from barnabas.storage.segment import Segment


def offset_for_timestamp(log: LogState, reader: Reader, timestamp_ms: int) -> tuple[int, int] | None:
    """(timestamp in ms, offset) of the first record at or after `timestamp_ms`; None if there is none."""
    for segment in log.segments.from_offset(log.log_start_offset):
        if segment.max_timestamp()[0] < timestamp_ms:
            continue
        offset = max(segment.time_index.get().floor_offset(timestamp_ms), log.log_start_offset)
        floor_position = segment.offset_index.get().floor_position(offset)
        for position, header in reader.walk(segment, floor_position, offset):
            if header.max_timestamp_ms < timestamp_ms or header.last_offset < log.log_start_offset:
                continue
            if header.base_offset >= log.high_watermark:
                return None
            found = _first_record(log, reader, segment, position, header, timestamp_ms)
            if found is not None:
                return found
    return None


def max_timestamp(log: LogState, reader: Reader) -> tuple[int, int] | None:
    """(timestamp in ms, offset) of the record with the largest timestamp, the first if several have it."""
    first, *others = log.segments.from_offset(log.log_start_offset)
    largest = max((first, *others), key=_max_timestamp_ms)
    found = _with_max_timestamp(log, reader, largest)
    if found is not None or largest is not first:
        return found
    found = _max_timestamp_from_start(log, reader, first)
    following = max(others, key=_max_timestamp_ms, default=None)
    if following is not None and (found is None or _max_timestamp_ms(following) > found[0]):
        return _with_max_timestamp(log, reader, following)
    return found


def _max_timestamp_ms(segment: Segment) -> int:
    return segment.max_timestamp()[0]


def _with_max_timestamp(log: LogState, reader: Reader, segment: Segment) -> tuple[int, int] | None:
    """The record with the segment's largest timestamp; None without any, or if it is below the log start."""
    timestamp_ms, last_offset = segment.max_timestamp()
    if timestamp_ms < 0 or last_offset < log.log_start_offset:
        return None
    floor_position = segment.offset_index.get().floor_position(last_offset)
    for position, header in reader.walk(segment, floor_position, last_offset):
        if header.last_offset >= last_offset:
            return _first_record(log, reader, segment, position, header, header.max_timestamp_ms)
    return None


def _max_timestamp_from_start(log: LogState, reader: Reader, segment: Segment) -> tuple[int, int] | None:
    """The same of what the segment holds from the log start on.

    Looks at all its headers, which is needed only once records were deleted with times ahead of later ones.
    """
    found: tuple[int, int] | None = None
    largest: tuple[int, BatchHeader] | None = None
    largest_ms = NO_TIMESTAMP
    floor_position = segment.offset_index.get().floor_position(log.log_start_offset)
    for position, header in reader.walk(segment, floor_position, log.log_start_offset):
        if header.base_offset < log.log_start_offset <= header.last_offset:
            found = max(_records(log, reader, segment, position, header), key=itemgetter(0), default=None)
            largest_ms = NO_TIMESTAMP if found is None else found[0]
        elif header.base_offset >= log.log_start_offset and header.max_timestamp_ms > largest_ms:
            largest, largest_ms = (position, header), header.max_timestamp_ms
    if largest is not None:
        return _first_record(log, reader, segment, *largest, largest_ms)
    return found if largest_ms >= 0 else None


def _first_record(
    log: LogState, reader: Reader, segment: Segment, position: int, header: BatchHeader, timestamp_ms: int
) -> tuple[int, int] | None:
    records = _records(log, reader, segment, position, header)
    return next((record for record in records if record[0] >= timestamp_ms), None)


def _records(
    log: LogState, reader: Reader, segment: Segment, position: int, header: BatchHeader
) -> Iterator[tuple[int, int]]:
    """(timestamp in ms, offset) of the batch's records at or above the log start."""
    batch = segment.read(position, header.size_bytes)
    try:
        for record in iterate_records(batch):
            if record.offset >= log.log_start_offset:
                yield record.timestamp_ms, record.offset
    except RecordFormatError as error:
        raise reader.verification.corrupt(segment, position, str(error).rstrip(".")) from error
