"""The policy *which* records may go next: by their offsets, or by their keys and priorities.

`RecordOrder` itself is the plain one. Available records come before new ones, the lowest ones first, and no
record keeps another one back, so there is nothing to keep track of. `keyed_order` has the other one. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from barnabas.protocol.extended.runs import Runs
from barnabas.share.partition.acquisition import (
    EVERYTHING,
    UNLIMITED_COUNT,
    AcquirePlan,
    Acquisition,
    Demand,
    Found,
    Selection,
    select_available,
)
from barnabas.share.partition.key_order import KeyOrder
from barnabas.share.partition.limits import ShareLimits
from barnabas.share.partition.waits import AvailableRanges
from barnabas.share.partition.window import Window


class RecordOrder:
    """Records go by their offsets. Shared by all windows, so it keeps nothing."""

    __slots__ = ()

    @property
    def keys(self) -> KeyOrder | None:
        """The records by their keys, if their order needs that."""
        return None

    @property
    def has_priorities(self) -> bool:
        return False

    def follows(self, limits: ShareLimits) -> bool:
        """Whether this is the order of the group's limits."""
        return not limits.is_ordered

    def begin(self, window: Window) -> None:
        """The window has this order from now on."""
        window.note_available(window.spso, window.speo - 1)

    # Acquisitions.

    def looked_until(self, window: Window) -> int:
        """Up to where acquisitions have looked at records, exclusive."""
        return window.speo

    def plan(self, window: Window, demand: Demand) -> AcquirePlan:
        """The reads for the records of a demand, 1 at least."""
        plan = AcquirePlan()
        control_runs = window.control_runs
        # The in-flight window bounds new records only.
        new_count = min(demand.records_max, demand.limits.record_locks_max - window.size())
        if window.available_from is not None:
            selection = select_available(
                window, demand.records_max, demand.limits, demand.acquire_mode, EVERYTHING
            )
            _note_selected(window, selection, demand.records_max)
            for part in selection.parts:
                if not plan.add(control_runs, part.first_offset, part.last_offset):
                    return plan
            plan.available_count = selection.record_count
            if selection.is_closed:
                return plan
            new_count = min(demand.records_max - selection.record_count, new_count)
        if new_count > 0:
            plan.add_new(control_runs, control_runs.next_data_offset(window.speo), new_count)
        return plan

    def acquire(self, window: Window, plan: AcquirePlan, demand: Demand, found: Found) -> Acquisition:
        """Acquires from the batches that were read, one at least."""
        acquisition = Acquisition(window, demand, found)
        if window.available_from is None and found.timed is None and plan.new_from >= window.speo:
            # New records only, and nothing has changed since the plan.
            last_offset = found.batches[-1].last_offset
            if plan.new_count and plan.new_from <= last_offset:
                acquisition.take_new(plan.new_from, last_offset, plan.new_count)
                if len(found.batches) > 1:  # Within a batch there are none.
                    acquisition.leave_out_control_offsets()
                acquisition.finish(has_looked_on=True)
            return acquisition
        spans = acquisition.spans_of(plan)
        if not spans:
            return acquisition
        looked_until = window.speo
        if window.available_from is not None:
            acquisition.archive_gaps(plan)
        if found.timed is not None:
            acquisition.admit_new(spans)
        selected_count = 0
        if window.available_from is not None:
            selection = select_available(
                window, demand.records_max, demand.limits, demand.acquire_mode, spans
            )
            acquisition.take_parts(selection.parts)
            selected_count = UNLIMITED_COUNT if selection.is_closed else selection.record_count
        if found.timed is None:
            new_count = min(
                demand.records_max - selected_count, demand.limits.record_locks_max - window.size()
            )
            new_from = window.control_runs.next_data_offset(window.speo)
            if new_count > 0 and spans[-1][0] <= new_from <= spans[-1][1]:
                acquisition.take_new(new_from, spans[-1][1], new_count)
        acquisition.leave_out_control_offsets()
        acquisition.finish(has_looked_on=window.speo != looked_until)
        return acquisition

    def plan_look_ahead(self, window: Window, limits: ShareLimits) -> AcquirePlan:
        """The read for more records to choose from: none without priorities."""
        return AcquirePlan()

    def look_ahead(self, window: Window, demand: Demand, found: Found) -> Acquisition:
        """Puts the records of the batches in flight that a look ahead has read; none is acquired."""
        raise NotImplementedError

    def runs(self, limits: ShareLimits) -> Runs | None:
        """Which held records are taken back together; None if each is held alone."""
        return None

    # Inspection.

    def waiting_pieces(
        self, window: Window, first_offset: int, last_offset: int
    ) -> Iterator[tuple[int, int, bool]]:
        """A range of available records by whether they wait for their key: (first, last, is waiting)."""
        yield first_offset, last_offset, False

    def priority_pieces(self, first_offset: int, last_offset: int) -> Iterator[tuple[int, int, int | None]]:
        """A range of unfinished records in pieces of one priority: (first, last, priority). It is None if it
        is not known, or there are no priorities.
        """
        yield first_offset, last_offset, None


BY_OFFSET: Final = RecordOrder()


def _note_selected(window: Window, selection: Selection, records_max: int) -> None:
    """Keeps the bounds of the available records that a complete look has found."""
    parts, waits = selection.parts, window.waits
    window.available_from = parts[0].first_offset if parts else None
    is_complete = selection.record_count < records_max and not selection.is_closed
    if parts and is_complete:
        window.available_to = parts[-1].last_offset
    if waits.has_delayed:
        if is_complete:
            waits.available = AvailableRanges((part.first_offset, part.last_offset) for part in parts)
        elif parts:
            waits.available.forget_below(parts[0].first_offset)
