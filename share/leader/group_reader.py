"""Reads the records of a plan, with all that an acquisition has to know about them: the batches that no
member gets, the keys and priorities in groups with an order of records, and the records that are not due or
have expired.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.protocol.identity import SharePartitionKey
from barnabas.runtime.clock import Clock
from barnabas.share.leader.aborted_batches import aborted_batches
from barnabas.share.leader.batch_keys import InvalidPriority, keys_of_batches
from barnabas.share.leader.fault_reports import FaultReports
from barnabas.share.leader.planned_reads import chosen_batches, planned_batches
from barnabas.share.leader.record_times import RecordTimes
from barnabas.share.leader.share_counts import PartitionCounts
from barnabas.share.leader.timed_reads import TimedRead, batches_before, keys_before
from barnabas.share.leader.unreadable_batches import UnreadableBatch, unreadable_batches
from barnabas.share.partition.acquire_plan import AcquirePlan
from barnabas.share.partition.key_order import BatchKeys
from barnabas.share.partition.limits import NO_TIMING, ShareLimits
from barnabas.share.partition.share_partition import SharePartition
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.reading.reader import BatchSlice


@dataclass(slots=True)
class GroupRead:
    """Batches that were read for a group. Those of `aborted` and `unreadable` go to no member."""

    plan: AcquirePlan
    """The plan that was read; see `chosen_batches`."""
    slices: list[BatchSlice]
    batches: list[tuple[int, int]]
    """(base offset, last offset) of each, up to a record that is not due."""
    aborted: Sequence[tuple[int, int]]
    """Those of aborted transactions, if the group reads committed records only."""
    unreadable: list[UnreadableBatch]
    keys: Sequence[BatchKeys] = ()
    """See `SharePartition.acquire`; empty if the group has no order of records."""
    invalid_priorities: Sequence[InvalidPriority] = ()
    timed: TimedRead | None = None
    """None in a group without a timing."""
    is_scattered: bool = False
    """Whether records between those that a member acquires may not be delivered to it."""


class GroupReader:
    """Reads for one share-partition."""

    def __init__(
        self,
        key: SharePartitionKey,
        source: PartitionLog,
        core: SharePartition,
        clock: Clock,
        counts: PartitionCounts,
    ) -> None:
        self.times = RecordTimes(clock, key, source.topic_partition.directory_name, core, counts)
        self._log = source
        self._core = core
        self._counts = counts
        self._faults = FaultReports(source, key.group_id)

    def read(
        self,
        plan: AcquirePlan,
        limits: ShareLimits,
        bytes_max: int,
        upper_offset: int,
        *,
        read_committed: bool,
    ) -> GroupRead:
        """The batches of the plan below `upper_offset` (exclusive), at most about `bytes_max`. Raises
        StorageError or ApiError.
        """
        if self.times.gate is not None:
            upper_offset = self.times.bounded(upper_offset, limits)
        if plan.chosen:
            plan, slices = chosen_batches(self._log, self._core, plan, limits, bytes_max, upper_offset)
        else:
            slices = planned_batches(self._log, plan, bytes_max, upper_offset)
        read = GroupRead(
            plan,
            slices,
            [span[:2] for slice_ in slices for span in slice_.batches],
            aborted_batches(self._log, slices) if read_committed else (),
            unreadable_batches(self._log, slices),
        )
        keys_until = self._core.keys_until
        if keys_until is not None:
            read.is_scattered = True
            found = keys_of_batches(slices, keys_until, read.unreadable, limits)
            read.keys, read.invalid_priorities = found.keys, found.invalid
            read.unreadable += found.malformed
        if read.unreadable:
            self._faults.report_malformed(read.unreadable)
        if limits.timing is not NO_TIMING:
            self._add_times(read, limits)
        if read.invalid_priorities:
            self._note_invalid_priorities(read)
        return read

    def _add_times(self, read: GroupRead, limits: ShareLimits) -> None:
        read.timed = self.times.look(read.slices, limits, read.aborted, read.unreadable)
        read.is_scattered = True
        gate = read.timed.gate
        if gate is not None:
            read.batches = batches_before(read.batches, gate)
            read.keys = keys_before(read.keys, gate)
            read.invalid_priorities = [
                priority for priority in read.invalid_priorities if priority.offset < gate.offset
            ]

    def _note_invalid_priorities(self, read: GroupRead) -> None:
        self._counts.invalid_priorities += len(read.invalid_priorities)
        self._faults.report_priority(read.invalid_priorities[0])
