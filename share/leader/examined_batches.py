"""The facts about batches that a leader needs before it acquires their records, and the log lines about their
faults.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.runtime.logging import get_logger
from barnabas.share.leader.aborted_batches import aborted_batches
from barnabas.share.leader.batch_keys import InvalidPriority, keys_of_batches
from barnabas.share.leader.handout import FetchDemand
from barnabas.share.leader.unreadable_batches import UnreadableBatch, unreadable_batches
from barnabas.share.partition.key_order import BatchKeys
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.reading.reader import BatchSlice

log = get_logger("share")


class ExaminedBatches(NamedTuple):
    """Facts about batches that were read. The batches of `aborted` and `unreadable` go to no member."""

    aborted: Sequence[tuple[int, int]]
    """(base offset, last offset), for groups that read committed records only."""
    unreadable: Sequence[UnreadableBatch]
    keys: Sequence[BatchKeys] = ()
    """Empty if the group has no order of records."""
    invalid_count: int = 0
    """Records whose header has a value that is no priority."""
    first_invalid: InvalidPriority | None = None


def examine(
    log: PartitionLog, read: Sequence[BatchSlice], keys_until: int | None, demand: FetchDemand
) -> ExaminedBatches:
    """`keys_until` is that of the share-partition. Raises StorageError."""
    aborted = aborted_batches(log, read) if demand.read_committed else ()
    unreadable = unreadable_batches(log, read)
    if keys_until is None:
        return ExaminedBatches(aborted, unreadable)
    found = keys_of_batches(read, keys_until, unreadable, demand.limits)
    unreadable += found.malformed
    return ExaminedBatches(aborted, unreadable, found.keys, found.invalid_count, found.first_invalid)


class FaultReports:
    """Logs each malformed batch once, although a group may skip it in parts, and the first invalid priority
    that the leader has read.
    """

    def __init__(self, log: PartitionLog, group_id: str) -> None:
        self._log = log
        self._group_id = group_id
        self._reported_offset = -1
        """The base offset of the last malformed batch that was logged."""
        self._has_reported_priority = False

    def report(self, examined: ExaminedBatches) -> None:
        for base_offset, last_offset, reason in examined.unreadable:
            if base_offset > self._reported_offset:
                self._reported_offset = base_offset
                log.error(
                    "a share group passes over a malformed batch",
                    partition=self._log.topic_partition.directory_name,
                    first_offset=base_offset,
                    last_offset=last_offset,
                    reason=reason,
                    group=self._group_id,
                )
        if examined.first_invalid is not None and not self._has_reported_priority:
            self._has_reported_priority = True
            log.warning(
                "a record has an invalid priority, which counts as 0: send one digit from 0 to 9",
                partition=self._log.topic_partition.directory_name,
                offset=examined.first_invalid.offset,
                value=examined.first_invalid.value,
                group=self._group_id,
            )
