"""The offset of the first record at or after a time, as in a broker's response to ListOffsets.

The time index gives the position to start at, headers give the batch, and only that batch is decoded.
"""

from __future__ import annotations

from barnabas.pipeline.log_source.directories import PartitionFolder
from barnabas.pipeline.log_source.errors import CorruptLog
from barnabas.pipeline.log_source.segment_file import OpenSegment
from barnabas.pipeline.log_source.slicing import LogBounds, slice_partition
from barnabas.protocol.record_batch import BatchHeader
from barnabas.protocol.records import iterate_records
from barnabas.protocol.varint import RecordFormatError

_WHOLE_SEGMENT = 2**63 - 1


def offset_for_time(folder: PartitionFolder, time_ms: int) -> int | None:
    """The offset of the first record with a timestamp of `time_ms` or later; None if there is none.

    Raises `CorruptLog` for an unreadable batch before it.
    """
    wanted = LogBounds(first_offset=folder.log_start_offset, time_min_ms=time_ms)
    for piece in slice_partition(folder, wanted, _WHOLE_SEGMENT):
        with OpenSegment(piece.log_path) as file:
            for position, header in file.headers(piece.start_position, piece.end_position):
                if header.is_control or header.max_timestamp_ms < time_ms:
                    continue
                found = _first_record(file, position, header, wanted)
                if found is not None:
                    return found
    return None


def _first_record(file: OpenSegment, position: int, header: BatchHeader, wanted: LogBounds) -> int | None:
    data = file.read(position, header.size_bytes)
    try:
        for record in iterate_records(data):
            is_late_enough = wanted.time_min_ms is None or record.timestamp_ms >= wanted.time_min_ms
            if is_late_enough and record.offset >= wanted.first_offset:
                return record.offset
    except RecordFormatError as error:
        raise CorruptLog(file.path, f"the batch at {position}: {error}") from error
    return None
