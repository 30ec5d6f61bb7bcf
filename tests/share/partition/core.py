"""The adapter between the tests of the state machine and its present shape: the calls that they make, with
batches as pairs of offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas.share.partition import acquisition, share_partition
from barnabas.share.partition.acquisition import AcquirePlan, Demand, Found
from barnabas.share.partition.arrival import TimedPart
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.key_order import BatchKeys, KeyOrder
from barnabas.share.partition.keyed_order import KeyedOrder
from barnabas.share.partition.limits import AcquireMode, ShareLimits
from barnabas.share.partition.waits import DueTimes
from barnabas.share.partition.window import Batch, Span, Window
from barnabas.storage.format.control_runs import ControlRuns

BYTES_MAX = 1 << 30


class ReadBatch(NamedTuple):
    """A producer batch that was read."""

    base_offset: int
    last_offset: int
    has_data: bool = True


class Plan(NamedTuple):
    """A plan whose reads are (first offset, record count)."""

    plan: AcquirePlan

    @property
    def reads(self) -> list[tuple[int, int]]:
        return [(read.first_offset, read.record_count) for read in self.plan.reads]

    @property
    def chosen(self) -> Sequence[Span]:
        return self.plan.chosen

    def chosen_count(self) -> int:
        return self.plan.chosen_count()


class Acquisition(NamedTuple):
    """The result of an acquisition."""

    acquired: list[tuple[int, int, int]]
    gaps: Decision | None
    batches: Sequence[Batch] = ()
    more_may_follow: bool = False
    overtaking_count: int = 0

    @classmethod
    def of(cls, made: acquisition.Acquisition) -> Acquisition:
        return cls(made.acquired, made.gaps, tuple(made.batches), made.more_may_follow, made.overtaking_count)


def new_window(start_offset: int) -> Window:
    """An empty window."""
    return Window(start_offset, ControlRuns(), DueTimes())


def select_in_order(
    window: Window,
    keys: KeyOrder,
    records_max: int,
    limits: ShareLimits,
    acquire_mode: AcquireMode,
    spans: Sequence[Span],
) -> list[Span]:
    """The ranges of records that may be delivered together."""
    selection = KeyedOrder(keys).select(window, demand(limits, acquire_mode=acquire_mode), records_max, spans)
    return [(part.first_offset, part.last_offset) for part in selection.parts]


def never(_index: int) -> bool:
    """Every batch holds data."""
    return False


def as_read(batches: Sequence[Span], has_no_data: Callable[[int], bool] = never) -> list[ReadBatch]:
    return [ReadBatch(first, last, not has_no_data(index)) for index, (first, last) in enumerate(batches)]


def demand(
    limits: ShareLimits,
    records_max: int = 500,
    *,
    member_id: str = "member-1",
    batch_size: int = 500,
    acquire_mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED,
    now_ms: int = 0,
) -> Demand:
    return Demand(member_id, records_max, BYTES_MAX, batch_size, acquire_mode, limits, now_ms)


if TYPE_CHECKING:
    _SharePartition = share_partition.SharePartition
else:

    class _SharePartition:
        """Has a state machine, and is none: a class that is compiled has no subclasses in Python."""

        def __init__(self, *arguments, **options):
            object.__setattr__(self, "core", share_partition.SharePartition(*arguments, **options))

        def __getattr__(self, name):
            return getattr(self.core, name)

        def __setattr__(self, name, value):
            setattr(self.core, name, value)


class SharePartition(_SharePartition):
    """The state machine of these tests."""

    if TYPE_CHECKING:
        core: share_partition.SharePartition

    def plan_acquire(
        self, records_max: int, limits: ShareLimits, acquire_mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED
    ) -> Plan:
        return Plan(self.plan(demand(limits, records_max, acquire_mode=acquire_mode)))

    def acquire(  # type: ignore[override]
        self,
        plan: Plan,
        member_id: str,
        batches: Sequence[Span],
        *,
        records_max: int,
        batch_size: int,
        acquire_mode: AcquireMode,
        limits: ShareLimits,
        now_ms: int,
        aborted: Sequence[Span] = (),
        unreadable: Sequence[Span] = (),
        has_no_data: Callable[[int], bool] = never,
        keys: Sequence[BatchKeys] = (),
        timed: Sequence[TimedPart] | None = None,
    ) -> Acquisition:
        asked = demand(
            limits,
            records_max,
            member_id=member_id,
            batch_size=batch_size,
            acquire_mode=acquire_mode,
            now_ms=now_ms,
        )
        found = Found(as_read(batches, has_no_data), has_empty=has_no_data is not never)
        found.aborted, found.unreadable, found.keys, found.timed = aborted, unreadable, keys, timed
        return Acquisition.of(self.core.acquire(plan.plan, asked, found))

    def planned_count(self, plan: Plan, upper_offset: int) -> int:  # type: ignore[override]
        return self.core.planned_count(plan.plan, upper_offset)

    def plan_look_ahead(self, limits: ShareLimits) -> Plan:  # type: ignore[override]
        return Plan(self.core.plan_look_ahead(limits))

    def look_ahead(  # type: ignore[override]
        self,
        batches: Sequence[Span],
        keys: Sequence[BatchKeys],
        batch_size: int,
        limits: ShareLimits,
        *,
        aborted: Sequence[Span] = (),
        timed: Sequence[TimedPart] | None = None,
    ) -> Acquisition:
        found = Found(as_read(batches), has_empty=False)
        found.aborted, found.keys, found.timed = aborted, keys, timed
        return Acquisition.of(self.core.look_ahead(demand(limits, batch_size=batch_size), found))

    def admit(  # type: ignore[override]
        self, batches: Sequence[Span], timed: Sequence[TimedPart], batch_size: int, limits: ShareLimits
    ) -> Decision:
        return self.core.admit(as_read(batches), timed, batch_size, limits)
