"""DeleteRecords: new log starts, which are durable before clients learn of them.

The log starts of all logs are in one checkpoint file of the data directory. A log start must not be ahead of
the log's durable records: after a loss of power the records in between, share state included, would be lost.
So the logs are synced first, then the file is written once, and then the log starts move.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from barnabas.protocol.errors import ApiError, without_frames
from barnabas.storage.directory.checkpoints import Checkpoints
from barnabas.storage.errors import LogOffline, StorageError
from barnabas.storage.log.partition_log import PartitionLog

Cut = tuple[PartitionLog, int]
"""A log and the offset before which its records are deleted, as in `PartitionLog.delete_records`."""
Outcome = int | ApiError | StorageError
"""The log start, or the error that kept it from moving."""


async def delete_records(
    cuts: Sequence[Cut], checkpoints: Checkpoints, *, concurrency_max: int
) -> list[Outcome]:
    """Moves the log starts durably; returns one outcome for each cut, in their order.

    `concurrency_max` bounds the logs that are synced at the same time.
    """
    outcomes: list[Outcome] = []
    for start in range(0, len(cuts), concurrency_max):
        some = cuts[start : start + concurrency_max]
        outcomes += await asyncio.gather(*(_sync_below(*cut) for cut in some))
    # No await may stand between here and the write: a topic deleted meanwhile must leave no log start.
    outcomes = [_note(log, offset, checkpoints) for (log, _), offset in zip(cuts, outcomes, strict=True)]
    try:
        await checkpoints.write_log_starts()
    except OSError as error:
        return [_not_written(log, outcome, error) for (log, _), outcome in zip(cuts, outcomes, strict=True)]
    return [_move(log, outcome) for (log, _), outcome in zip(cuts, outcomes, strict=True)]


async def _sync_below(log: PartitionLog, before_offset: int) -> Outcome:
    """The future log start; all records below it are durable now."""
    try:
        offset = log.start_after_deletion(before_offset)
        if offset > log.durable_offset:
            await log.flusher.sync()
    except (ApiError, StorageError) as error:
        return without_frames(error)
    return offset


def _note(log: PartitionLog, outcome: Outcome, checkpoints: Checkpoints) -> Outcome:
    if not isinstance(outcome, int):
        return outcome
    try:
        # By now the topic may be deleted, or the log may be offline or begin at a higher offset.
        offset = log.start_after_deletion(max(outcome, log.log_start_offset))
    except (ApiError, StorageError) as error:
        return without_frames(error)
    checkpoints.note_log_start(log.topic_partition, min(offset, log.durable_offset))
    return offset


def _not_written(log: PartitionLog, outcome: Outcome, error: OSError) -> Outcome:
    if not isinstance(outcome, int):
        return outcome
    failure = LogOffline(f"The log start of {log.topic_partition.directory_name} cannot be written: {error}")
    failure.__cause__ = error
    return without_frames(failure)


def _move(log: PartitionLog, outcome: Outcome) -> Outcome:
    if not isinstance(outcome, int):
        return outcome
    try:
        return log.delete_records(outcome)
    except (ApiError, StorageError) as error:
        return without_frames(error)
