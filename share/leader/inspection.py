"""One page of the states of a share-partition's records, each with its last recorded change.

The share-partition knows the states (`partition.inspection`), its store the causes. Both are of one moment. A
recorded change counts only if it led to the present state: a change that was recorded without a cause, or is
being recorded, may have followed it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from barnabas.protocol.delivery_state import RecordState, is_final
from barnabas.protocol.record_inspection import NO_NEXT_PAGE, DescribedState
from barnabas.share.leader.recorded_changes import NO_CHANGE, RecordedChange
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.share.partition.inspection import InspectedRange, InspectionBounds
from barnabas.share.partition.limits import ShareLimits
from barnabas.storage.format.control_runs import ControlRuns


class DescribedRecords(NamedTuple):
    """Neighbouring records that are alike."""

    inspected: InspectedRange
    last_change: RecordedChange | None
    """None if it is unknown; `NO_CHANGE` if none was ever recorded."""


class Page(NamedTuple):
    """The ranges are ascending and disjoint; `next_offset` may be `NO_NEXT_PAGE`."""

    ranges: Sequence[DescribedRecords]
    next_offset: int


def bounds_of(
    leader: SharePartitionLeader, limits: ShareLimits, first_offset: int | None, *, read_committed: bool
) -> InspectionBounds:
    """The bounds of a look from `first_offset` on; None is the group's start offset."""
    return InspectionBounds(
        leader.core.spso if first_offset is None else first_offset,
        leader.log.log_start_offset,
        leader.readable_end(read_committed=read_committed),
        leader.log.high_watermark,
        leader.reader.times.closed_gate(limits),
    )


def inspect_page(
    leader: SharePartitionLeader,
    limits: ShareLimits,
    bounds: InspectionBounds,
    ranges_max: int,
    *,
    with_changes: bool,
    is_wanted: Callable[[InspectedRange], bool] | None = None,
) -> Page:
    """At most `ranges_max` ranges: all, or the wanted ones. Raises StorageError."""
    inspected = list(islice(filter(is_wanted, leader.core.inspect(limits, bounds)), ranges_max + 1))
    changed = filter(_may_have_changed, inspected) if with_changes else ()
    wanted = [(found.first_offset, found.last_offset) for found in changed]
    changes = leader.last_changes(wanted) if wanted else []
    described = _described(leader.log.control_runs, inspected, changes)
    ranges = list(islice(described, ranges_max + 1))
    next_offset = ranges[ranges_max].inspected.first_offset if len(ranges) > ranges_max else NO_NEXT_PAGE
    return Page(ranges[:ranges_max], next_offset)


def _may_have_changed(inspected: InspectedRange) -> bool:
    """Whether a state may have been recorded. A first delivery is not recorded."""
    if inspected.state is DescribedState.ACQUIRED:
        return inspected.delivery_count > 1
    return inspected.state is not DescribedState.NEW and (
        inspected.state is not DescribedState.AVAILABLE or inspected.delivery_count > 0
    )


def _described(
    control_runs: ControlRuns, inspected: Iterable[InspectedRange], changes: Sequence[RecordedChange]
) -> Iterator[DescribedRecords]:
    position = 0
    for whole in inspected:
        if not _may_have_changed(whole):
            yield DescribedRecords(whole, NO_CHANGE)
            continue
        first_offset = whole.first_offset
        while position < len(changes) and changes[position].first_offset <= whole.last_offset:
            change = changes[position]
            yield from _part(control_runs, whole, first_offset, change.first_offset - 1, None)
            yield from _part(control_runs, whole, change.first_offset, change.last_offset, change)
            first_offset = change.last_offset + 1
            position += 1
        yield from _part(control_runs, whole, first_offset, whole.last_offset, None)


def _part(
    control_runs: ControlRuns,
    whole: InspectedRange,
    first_offset: int,
    last_offset: int,
    change: RecordedChange | None,
) -> Iterator[DescribedRecords]:
    """The records of this part of a range, unless it has none."""
    first_offset = control_runs.next_data_offset(first_offset)
    if first_offset > last_offset:
        return
    last_offset = control_runs.previous_data_offset(last_offset)
    part = whole._replace(first_offset=first_offset, last_offset=last_offset)
    if change is None or not _led_to(change, whole):
        yield DescribedRecords(part, None)
    elif whole.state is DescribedState.PASSED:
        state = DescribedState(change.state)
        yield DescribedRecords(part._replace(state=state, delivery_count=change.delivery_count), change)
    else:
        yield DescribedRecords(part, change)


def _led_to(change: RecordedChange, present: InspectedRange) -> bool:
    """Whether the recorded state is the present one. Acquired is recorded as available with one delivery
    less.
    """
    if present.state is DescribedState.PASSED:
        return is_final(change.state)
    if present.state is DescribedState.ACQUIRED:
        return (change.state, change.delivery_count) == (RecordState.AVAILABLE, present.delivery_count - 1)
    return (DescribedState(change.state), change.delivery_count) == (present.state, present.delivery_count)
