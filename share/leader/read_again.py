"""Reads records again that a member has acquired, for an answer that is given a second time."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.share.leader.record_source import RecordSource
from barnabas.storage.reading.log_slice import BatchSlice

_BYTES_MAX = 1 << 31
"""The first answer bounded the bytes: the same batches are read again."""


def read_again(source: RecordSource, ranges: Sequence[tuple[int, int, int]]) -> list[BatchSlice]:
    """The batches with the records of these ascending ranges, each once. Raises StorageError or ApiError."""
    slices: list[BatchSlice] = []
    read_until = -1
    for first_offset, last_offset, _ in ranges:
        start = max(first_offset, read_until)
        while start <= last_offset:
            records_max = source.control_runs.data_count(start, last_offset)
            found = source.read_batches(
                start, records_max=records_max, bytes_max=_BYTES_MAX, upper_offset=source.high_watermark
            )
            if not found.batches:
                break
            slices.append(found)
            start = read_until = found.batches[-1].last_offset + 1
    return slices
