"""Offsets by time, for ListOffsets (KIP-79, KIP-734) and share groups that begin at a duration.

The time index says where to begin, the batches' headers which one it is, and only that one is decoded. Share
state has no part in it.
"""

from __future__ import annotations

from barnabas.protocol.record_batch import BatchHeader
from barnabas.protocol.records import iterate_records
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
        for position, header in reader.walk(segment, floor_position):
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
    segments = log.segments.from_offset(log.log_start_offset)
    largest = max(segments, key=lambda segment: segment.max_timestamp()[0])
    timestamp_ms, last_offset = largest.max_timestamp()
    if timestamp_ms < 0:
        return None
    floor_position = largest.offset_index.get().floor_position(last_offset)
    for position, header in reader.walk(largest, floor_position):
        if header.last_offset >= max(last_offset, log.log_start_offset):
            return _first_record(log, reader, largest, position, header, header.max_timestamp_ms)
    return None


def _first_record(
    log: LogState, reader: Reader, segment: Segment, position: int, header: BatchHeader, timestamp_ms: int
) -> tuple[int, int] | None:
    batch = segment.read(position, header.size_bytes)
    for record in iterate_records(batch):
        if record.timestamp_ms >= timestamp_ms and record.offset >= log.log_start_offset:
            return record.timestamp_ms, record.offset
    return None
