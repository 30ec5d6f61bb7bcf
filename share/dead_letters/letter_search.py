"""The search for dead letters that were written before a crash."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final

from barnabas.protocol.dead_letter import Original, original_of
from barnabas.share.dead_letters.batch_records import batch_records
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.reading.log_slice import BatchSlice

_READ_BYTES: Final = 1024 * 1024
_READ_RECORDS: Final = 10_000


async def written_letters(log: PartitionLog, wanted: Mapping[Original, int]) -> set[Original]:
    """Those of the records `wanted` that have a letter in the log, at or behind the offset of each.

    The log is read once, from the lowest of these offsets on. Other requests are served between the reads. A
    loss of power can leave the log shorter than an offset: then that record has no letter. Raises
    StorageError.
    """
    found: set[Original] = set()
    offset = max(min(wanted.values(), default=log.log_end_offset), log.log_start_offset)
    while len(found) < len(wanted) and offset < log.log_end_offset:
        read = log.read_batches(offset, records_max=_READ_RECORDS, bytes_max=_READ_BYTES)
        if not read.batches:
            break
        found |= {
            original
            for letter_offset, original in _letters(read)
            if wanted.get(original, log.log_end_offset) <= letter_offset
        }
        offset = read.batches[-1].last_offset + 1
        await asyncio.sleep(0)
    return found


def _letters(read: BatchSlice) -> Iterator[tuple[int, Original]]:
    """The letters in a slice, each with its own offset."""
    for record in batch_records(read):
        original = original_of(record)
        if original is not None:
            yield record.offset, original
