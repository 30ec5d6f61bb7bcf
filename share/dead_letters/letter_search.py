"""The search for dead letters that were written before a crash."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Set
from typing import Final

from barnabas.protocol.dead_letter import Original, original_of
from barnabas.share.dead_letters.batch_records import batch_records
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.reading.reader import BatchSlice

_READ_BYTES: Final = 1024 * 1024
_READ_RECORDS: Final = 10_000


async def written_letters(log: PartitionLog, from_offset: int, wanted: Set[Original]) -> set[Original]:
    """Those of the records `wanted` that have a letter in the log, at or behind `from_offset`.

    Other requests are served between the reads. A loss of power can leave the log shorter than `from_offset`:
    then it has none. Raises StorageError.
    """
    found: set[Original] = set()
    offset = max(from_offset, log.log_start_offset)
    while len(found) < len(wanted) and offset < log.log_end_offset:
        read = log.read_batches(offset, records_max=_READ_RECORDS, bytes_max=_READ_BYTES)
        if not read.batches:
            break
        found |= wanted & set(_originals(read))
        offset = read.batches[-1].last_offset + 1
        await asyncio.sleep(0)
    return found


def _originals(read: BatchSlice) -> Iterator[Original]:
    for record in batch_records(read):
        original = original_of(record)
        if original is not None:
            yield original
