"""Reads the records of a plan, with all that an acquisition has to know about them: the batches that no
member gets, the keys and priorities in groups with an order of records, and the records that are not due or
have expired.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.identity import SharePartitionKey
from barnabas.runtime.clock import Clock
from barnabas.share.leader.aborted_batches import aborted_batches
from barnabas.share.leader.batch_keys import InvalidPriority, keys_of_batches
from barnabas.share.leader.fault_reports import FaultReports
from barnabas.share.leader.record_source import RecordSource
from barnabas.share.leader.record_times import RecordTimes
from barnabas.share.leader.share_counts import PartitionCounts
from barnabas.share.leader.timed_reads import TimedRead, batches_before, keys_before
from barnabas.share.leader.unreadable_batches import UnreadableBatch, unreadable_batches
from barnabas.share.partition.acquisition import UNBOUNDED_OFFSET, AcquirePlan, Demand, Found
from barnabas.share.partition.limits import NO_TIMING, AcquireMode, ShareLimits
from barnabas.share.partition.share_partition import SharePartition
from barnabas.storage.errors import CorruptBatch
from barnabas.storage.reading.log_slice import BatchSlice


class GroupRead(Found):
    """Batches that were read for a group."""

    __slots__ = ("invalid_priorities", "is_scattered", "malformed", "plan", "slices", "spans", "timed_read")

    def __init__(self, plan: AcquirePlan, slices: list[BatchSlice]) -> None:
        if len(slices) == 1:
            spans, has_empty = slices[0].batches, slices[0].has_empty
        else:
            spans = [span for read in slices for span in read.batches]
            has_empty = any(read.has_empty for read in slices)
        self.batches = spans
        self.has_empty = has_empty
        self.aborted = self.unreadable = self.keys = ()
        self.timed = None
        self.spans = spans
        """The batches, with their places in the slices."""
        self.plan = plan
        """The plan that was read; see `_chosen_batches`."""
        self.slices = slices
        self.malformed: list[UnreadableBatch] = []
        self.invalid_priorities: Sequence[InvalidPriority] = ()
        self.timed_read: TimedRead | None = None
        """None in a group without a timing."""
        self.is_scattered = False
        """Whether records between those that a member acquires may not be delivered to it."""


class GroupReader:
    """Reads for one share-partition."""

    def __init__(
        self,
        key: SharePartitionKey,
        source: RecordSource,
        core: SharePartition,
        clock: Clock,
        counts: PartitionCounts,
    ) -> None:
        self.times = RecordTimes(clock, key, source.topic_partition.directory_name, core, counts)
        self._source = source
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
            plan, slices = _chosen_batches(self._source, self._core, plan, limits, bytes_max, upper_offset)
        else:
            slices = _planned_batches(self._source, plan, bytes_max, upper_offset)
        read = GroupRead(plan, slices)
        if read_committed:
            read.aborted = aborted_batches(self._source, slices)
        if slices and slices[0].batches[0].base_offset < self._source.opened_end_offset:
            read.malformed = unreadable_batches(self._source, slices)
        keys = self._core.window.keys
        if keys is not None:
            self._add_keys(read, keys.known_until, limits)
        if limits.timing is not NO_TIMING:
            self._add_times(read, limits)
        if read.malformed:
            read.unreadable = [(batch.base_offset, batch.last_offset) for batch in read.malformed]
            self._faults.report_malformed(read.malformed)
        if read.invalid_priorities:
            self._counts.invalid_priorities += len(read.invalid_priorities)
            self._faults.report_priority(read.invalid_priorities[0])
        return read

    def _add_keys(self, read: GroupRead, keys_until: int, limits: ShareLimits) -> None:
        found = keys_of_batches(read.slices, keys_until, read.malformed, limits)
        read.keys, read.invalid_priorities = found.keys, found.invalid
        read.malformed += found.malformed
        read.is_scattered = True
        # The core archives the batches without data when it adds their keys.
        read.has_empty = False

    def _add_times(self, read: GroupRead, limits: ShareLimits) -> None:
        found = read.timed_read = self.times.look(read.slices, limits, read.aborted, read.malformed)
        read.timed = found.parts
        read.is_scattered = True
        gate = found.gate
        if gate is not None:
            read.batches = read.spans = batches_before(read.spans, gate)
            read.keys = keys_before(read.keys, gate)
            read.invalid_priorities = [
                priority for priority in read.invalid_priorities if priority.offset < gate.offset
            ]


def _chosen_batches(
    source: RecordSource,
    core: SharePartition,
    plan: AcquirePlan,
    limits: ShareLimits,
    bytes_max: int,
    upper_offset: int,
) -> tuple[AcquirePlan, list[BatchSlice]]:
    """The plan and its batches, for a plan of records that priorities have chosen. Raises StorageError or
    ApiError.

    If the bytes do not suffice for all of these records, or a batch is damaged, the plan is another one, for
    as many records as were read: so the most urgent ones are read, and not the first ones.
    """
    read = _planned_batches(source, plan, bytes_max, upper_offset)
    while plan.chosen:
        count = plan.chosen_count(read[-1].batches[-1].last_offset) if read else 0
        if not count or count == plan.chosen_count():
            break
        plan = core.plan(Demand("", count, bytes_max, 0, AcquireMode.BATCH_OPTIMIZED, limits, 0))
        read = _planned_batches(source, plan, bytes_max, upper_offset)
    return plan, read


def _planned_batches(
    source: RecordSource, plan: AcquirePlan, bytes_max: int, upper_offset: int
) -> list[BatchSlice]:
    """The batches of the plan's reads below `upper_offset` (exclusive): at most `bytes_max`, or one batch.
    Raises StorageError or ApiError.

    A read of available records goes on in the next segment. No read follows one that stays incomplete: it
    would bring records without those before them.
    """
    slices: list[BatchSlice] = []
    bytes_left = bytes_max
    read_until = -1
    for first_offset, planned_count, last_offset in plan.reads:
        start, records_max = first_offset, planned_count
        if read_until > first_offset:
            start = read_until
            if last_offset != UNBOUNDED_OFFSET:
                records_max = source.control_runs.data_count(start, last_offset)
        while start <= last_offset:
            if bytes_left <= 0 or start >= upper_offset:
                return slices
            try:
                found = source.read_batches(
                    start,
                    records_max=records_max,
                    bytes_max=bytes_left,
                    upper_offset=upper_offset,
                    at_least_one=not slices,
                )
            except CorruptBatch:
                if not slices:
                    raise
                return slices
            if not found.batches:
                return slices
            slices.append(found)
            if last_offset == UNBOUNDED_OFFSET:
                return slices  # New records are the last ones, and the next fetch reads on.
            bytes_left -= sum(span.end - span.start for span in found.batches)
            start = read_until = found.batches[-1].last_offset + 1
            records_max = source.control_runs.data_count(start, last_offset)
    return slices
