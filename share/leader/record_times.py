"""The times of records as one leader sees them: where the reading of new records stops, and why.

A record that is not due closes the *gate* at its offset: no fetch reads beyond it before the record is due.
So does a record with a delay of its own that finds no room among the delayed ones in flight; that is an
unusual state, which is logged and published as a metric. Nothing of it is recorded: after a restart, the
first read meets the same record again.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.delivery_state import Cause
from barnabas.protocol.identity import SharePartitionKey
from barnabas.runtime.clock import Clock, ahead_ms
from barnabas.runtime.logging import get_logger
from barnabas.share.leader.share_counts import PartitionCounts
from barnabas.share.leader.timed_reads import Gate, TimedRead, look_at_times
from barnabas.share.leader.unreadable_batches import UnreadableBatch
from barnabas.share.partition.limits import RecordTiming, ShareLimits
from barnabas.share.partition.share_partition import SharePartition
from barnabas.share.partition.waits import CLOCK_LOOK_MS
from barnabas.storage.reading.log_slice import BatchSlice

log = get_logger("share")


class RecordTimes:
    """The gate of one share-partition."""

    def __init__(
        self,
        clock: Clock,
        key: SharePartitionKey,
        partition_name: str,
        core: SharePartition,
        counts: PartitionCounts,
    ) -> None:
        self.gate: Gate | None = None
        self._clock = clock
        self._group_id = key.group_id
        self._partition_name = partition_name
        self._core = core
        self._counts = counts
        self._invalid_told = False
        self._stall_told = False

    def bounded(self, upper_offset: int, limits: ShareLimits) -> int:
        """The exclusive end of the records that may be read now, at most `upper_offset`."""
        gate = self.gate
        if gate is None:
            return upper_offset
        if self._is_closed(gate, limits.timing):
            return min(upper_offset, gate.offset)
        self.gate = None
        return upper_offset

    def closed_gate(self, limits: ShareLimits) -> tuple[int, int] | None:
        """The offset of the gate, and when it opens (wall-clock time; 0 until there is room); None if there
        is none.
        """
        gate = self.gate
        if gate is None or not self._is_closed(gate, limits.timing):
            return None
        return gate.offset, gate.due_ms or 0

    def is_stalled(self, limits: ShareLimits) -> bool:
        """Whether the delayed records in flight keep new ones from being read."""
        gate = self.gate
        return gate is not None and gate.due_ms is None and self._is_closed(gate, limits.timing)

    def next_deadline_ms(self, deadline_ms: int | None) -> int | None:
        """When the record at the gate is due, or `deadline_ms` if that is earlier (both monotonic).

        A wait for a wall-clock time is looked at now and then, because the clock may be set.
        """
        gate = self.gate
        opens_ms = None if gate is None or gate.due_ms is None else gate.due_ms - ahead_ms(self._clock)
        if opens_ms is None:
            return deadline_ms
        look_ms = self._clock.monotonic_ms() + CLOCK_LOOK_MS
        return min(at_ms for at_ms in (deadline_ms, opens_ms, look_ms) if at_ms is not None)

    def opens(self) -> bool:
        """Whether the record at the gate has become due. Then the gate is open."""
        gate = self.gate
        if gate is None or gate.due_ms is None or self._clock.wall_ms() < gate.due_ms:
            return False
        self.gate = None
        return True

    def look(
        self,
        read: Sequence[BatchSlice],
        limits: ShareLimits,
        aborted: Sequence[tuple[int, int]],
        unreadable: Sequence[UnreadableBatch],
    ) -> TimedRead:
        """Looks at the times of the records that were read. A new gate replaces the present one."""
        self._core.follow_wall_clock(ahead_ms(self._clock))
        passed_over = {base_offset: Cause.TRANSACTION_ABORTED for base_offset, _ in aborted}
        passed_over |= {batch.base_offset: Cause.GAP for batch in unreadable}
        found = look_at_times(
            read,
            limits.timing,
            first_new_offset=self._core.speo,
            delayed_room=limits.timing.delayed_records_max - self._core.delayed_count,
            passed_over=passed_over,
            wall_ms=self._clock.wall_ms(),
        )
        if found.gate is not None:
            self.gate = found.gate
        self._report(found)
        return found

    def _is_closed(self, gate: Gate, timing: RecordTiming) -> bool:
        if gate.due_ms is not None:
            return gate.delay_ms == timing.delay_ms and self._clock.wall_ms() < gate.due_ms
        has_room = self._core.delayed_count < timing.delayed_records_max
        return timing.delay_header is not None and not has_room

    def _report(self, found: TimedRead) -> None:
        """One line for the first header that is no delay, and one for each time that no room is left."""
        self._counts.invalid_delay_headers += found.invalid_headers + found.unread_headers
        if found.invalid_headers and not self._invalid_told:
            self._invalid_told = True
            log.warning(
                "records have a delay header that is no delay in milliseconds: they are delivered without it",
                group=self._group_id,
                partition=self._partition_name,
            )
        is_full = found.gate is not None and found.gate.due_ms is None
        if is_full and not self._stall_told:
            log.error(
                "there are as many delayed records as share.delayed.records.max allows: no member gets new "
                "ones before one of them is due",
                group=self._group_id,
                partition=self._partition_name,
            )
        self._stall_told = is_full
