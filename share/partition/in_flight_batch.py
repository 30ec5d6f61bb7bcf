"""The batches of the records in flight, and their runs of equal records (KIP-932, "In-flight records").

Within a batch, equal neighbours are one run, usually one for the whole batch; acknowledging record by record
splits runs, and they join again as their records become equal.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from barnabas.protocol.delivery_state import Condition, Due, RecordState

AVAILABLE = RecordState.AVAILABLE
ACQUIRED = RecordState.ACQUIRED
ACKNOWLEDGED = RecordState.ACKNOWLEDGED
ARCHIVING = RecordState.ARCHIVING
ARCHIVED = RecordState.ARCHIVED


class InFlightRun:
    """Neighbouring offsets of one batch, both ends inclusive, that are equal in all fields below.

    `owner`, `lock_deadline_ms` and `acquired_ms` belong to an acquired run, `condition` to the state. A
    renewal moves the deadline, and leaves the time of the acquisition. An acquired run with a condition has
    no owner: its acknowledgement waits for the end of a transaction. `pending` means that a change of the run
    is being recorded: no other change and no acquisition is possible, and the SPSO does not pass it. An
    available run with a condition, which is a `Due`, waits: it cannot be acquired until it is due.
    `keeps_key` means that the run is given up, and a leader that starts again now would deliver it once more.
    """

    __slots__ = (
        "acquired_ms",
        "condition",
        "delivery_count",
        "first_offset",
        "keeps_key",
        "last_offset",
        "lock_deadline_ms",
        "owner",
        "pending",
        "state",
    )

    def __init__(
        self,
        first_offset: int,
        last_offset: int,
        state: RecordState,
        delivery_count: int,
        owner: str | None = None,
        lock_deadline_ms: int = 0,
        condition: Condition | None = None,
        acquired_ms: int = 0,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.state = state
        self.delivery_count = delivery_count
        self.owner = owner
        self.lock_deadline_ms = lock_deadline_ms
        self.condition = condition
        self.acquired_ms = acquired_ms
        self.pending = False
        self.keeps_key = False

    @property
    def waits(self) -> bool:
        """Whether the run is available, but not due yet."""
        return self.condition is not None and self.state is AVAILABLE

    @property
    def keeps_others_back(self) -> bool:
        """Whether no other record can be delivered beside the run, if its batch is delivered alone."""
        return self.state is ACQUIRED or self.waits or self.keeps_key

    @property
    def is_delayed(self) -> bool:
        """Whether the run waits for its first delivery."""
        return not self.delivery_count and self.state is AVAILABLE and isinstance(self.condition, Due)

    def is_like(self, other: InFlightRun) -> bool:
        """Whether the two may be one run. A pending run is referenced by its decision, and is never
        joined.
        """
        return (
            self.state is other.state
            and self.delivery_count == other.delivery_count
            and self.owner == other.owner
            and self.lock_deadline_ms == other.lock_deadline_ms
            and self.acquired_ms == other.acquired_ms
            and self.condition == other.condition
            and not self.pending
            and not other.pending
        )

    def free(self, state: RecordState, condition: Condition | None) -> None:
        """Takes the run from its owner."""
        self.state = state
        self.condition = condition
        self.owner = None
        self.lock_deadline_ms = 0
        self.acquired_ms = 0

    def cut_behind(self, offset: int) -> InFlightRun:
        """Ends the run at `offset` and returns the rest as a run of its own."""
        rest = InFlightRun(
            offset + 1,
            self.last_offset,
            self.state,
            self.delivery_count,
            self.owner,
            self.lock_deadline_ms,
            self.condition,
            self.acquired_ms,
        )
        self.last_offset = offset
        return rest


class InFlightBatch:
    """A range that was first acquired as a whole; its bounds stay, its runs cover the part at or above the
    SPSO.

    Of the records delivered before a restart, equal neighbours are one batch.
    """

    __slots__ = ("base_offset", "last_offset", "runs")

    def __init__(self, base_offset: int, last_offset: int, runs: list[InFlightRun]) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.runs = runs

    def run_index(self, offset: int) -> int:
        """The index of the run that holds `offset`; of the first one behind it if none does."""
        if len(self.runs) == 1:
            return 0 if offset <= self.runs[0].last_offset else 1
        return bisect_left(self.runs, offset, key=_run_last_offset)

    def isolate(self, index: int, boundary: int, last_offset: int) -> InFlightRun:
        """Makes the part of run `index` from `boundary` to `last_offset` a run of its own, and returns it.

        Both may lie outside of the run. Runs are cut behind data offsets only: see `InFlight.boundary`.
        """
        run = self.runs[index]
        if boundary > run.first_offset:
            rest = run.cut_behind(boundary - 1)
            self.runs.insert(index + 1, rest)
            run, index = rest, index + 1
        if last_offset < run.last_offset:
            self.runs.insert(index + 1, run.cut_behind(last_offset))
        return run

    def isolate_all(self, parts: Sequence[tuple[int, int]]) -> list[InFlightRun]:
        """Makes each part a run of its own, in one pass. The parts are (boundary, last offset), ascending,
        each inside of one run, and cut behind data offsets only.
        """
        runs: list[InFlightRun] = []
        isolated: list[InFlightRun] = []
        rest = iter(self.runs)
        run = next(rest)
        for boundary, last_offset in parts:
            while run.last_offset < boundary:
                runs.append(run)
                run = next(rest)
            if run.first_offset < boundary:
                runs.append(run)
                run = run.cut_behind(boundary - 1)
            isolated.append(run)
            if last_offset < run.last_offset:
                runs.append(run)
                run = run.cut_behind(last_offset)
        self.runs[:] = (*runs, run, *rest)
        return isolated

    def join(self, first_offset: int, last_offset: int) -> None:
        """Joins equal runs, from the one before `first_offset` to the one behind `last_offset`."""
        runs = self.runs
        if len(runs) == 1:
            return
        first = self.run_index(first_offset)
        last = first if last_offset == first_offset else self.run_index(last_offset)
        low, high = max(first - 1, 0), min(last + 2, len(runs))
        joined = [runs[low]]
        for run in runs[low + 1 : high]:
            if joined[-1].is_like(run):
                joined[-1].last_offset = run.last_offset
            else:
                joined.append(run)
        if len(joined) < high - low:
            runs[low:high] = joined


class UnreadBatch(InFlightBatch):
    """Records that a restarted leader finds in flight, without a recorded delivery.

    Their producer batches are unknown until they are read. They are delivered by producer batches, like new
    records, and the batch shrinks with each fetch. All of it is available, except a part at its beginning
    that may be archived.
    """

    __slots__ = ()


class FinishedBatch(InFlightBatch):
    """Neighbouring batches whose records are all final, joined, because delayed records before them hold the
    start offset: see `finished_batches`.
    """

    __slots__ = ()


def _run_last_offset(run: InFlightRun) -> int:
    return run.last_offset
