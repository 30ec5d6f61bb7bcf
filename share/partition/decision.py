"""A share-partition's decision that is not yet recorded (KIP-932, "Share-partition states"). Pure.

The leader decides, the log records, the leader completes or aborts. An acknowledgement takes effect when it
is recorded, and not at all if that fails.

The end of a lock is an *immediate* change: it is in force as soon as it is decided, and stays in force if it
cannot be recorded; then the next decision includes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.protocol.delivery_state import (
    Cause,
    Condition,
    PendingAcknowledgement,
    RecordState,
    StateRange,
)
from barnabas.protocol.tuples import maker
from barnabas.share.partition.window import (
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    Batch,
    Run,
    RunInBatch,
    Window,
)


class Outcome(NamedTuple):
    """The effects that waiting fetches must know of."""

    released: bool = False
    """Records have become available."""
    spso_moved: bool = False
    """The share-partition start offset has advanced, so the in-flight window has room."""


NOTHING_HAPPENED: Final = Outcome()
SPSO_MOVED: Final = Outcome(spso_moved=True)


class Target(NamedTuple):
    """A run that gets a state, with its condition, once that is recorded."""

    batch: Batch
    run: Run
    state: RecordState
    condition: Condition | None = None


_new_target, _new_change = maker(Target), maker(StateRange)


class Decision:
    """Changes that are recorded together, then completed or aborted; not visible to any client before.

    `changes` has all that is recorded, in the order of recording, where later ranges win over earlier ones.
    Each change is of one of two kinds:

    - It takes effect when it is recorded, and not at all if that fails: an acknowledgement. `targets` has its
      run; `taken_back` has the runs that become available with it.
    - It is in force already: the end of a lock, for example. `immediate` has it, too, and `given_up_runs` its
      run if the record is final by it. If recording fails, these two are kept for the next decision (see
      `recorded.Unrecorded`). So a decision of the first kind may begin with changes of the second.

    `letters` belongs to both kinds: the Archiving ones among the changes. `start_offset`, if set, requires a
    checkpoint that begins there. `outcome` has the effects that the decision already had. The other fields
    are for counting and for times.
    """

    __slots__ = (
        "acknowledged",
        "ahead_ms",
        "changes",
        "decided_at_ms",
        "ended_lock_count",
        "given_up_runs",
        "gives_up",
        "immediate",
        "letters",
        "outcome",
        "start_offset",
        "taken_back",
        "targets",
    )

    def __init__(self) -> None:
        self.changes: list[StateRange] = []
        self.gives_up = False
        """Whether a change makes a record Archived or Archiving."""
        self.start_offset: int | None = None
        self.outcome = NOTHING_HAPPENED
        self.letters: list[StateRange] = []
        """Records whose dead letter is due once the decision is recorded."""
        self.targets: list[Target] = []
        """Runs that get the given state on completion, and stay unchanged if the write fails. They are
        pending until then.
        """
        self.taken_back: list[RunInBatch] = []
        """Held runs that become available with the targets, see `record_order`; nothing is recorded for
        them."""
        self.immediate: list[StateRange] = []
        """The changes that are in force already."""
        self.given_up_runs: list[RunInBatch] = []
        """Runs that are Archived or Archiving already. The SPSO passes them, their dead letters are written,
        and their keys are free, only when that is recorded.
        """
        self.acknowledged: Sequence[tuple[int, int, int]] = ()
        """Ranges that a member has acknowledged: first and last offset, both inclusive, and the type."""
        self.ended_lock_count = 0
        """Records whose lock has ended by deciding, by its time or with its session."""
        self.ahead_ms = 0
        """The wall-clock time minus the monotonic time by which the due times of its targets hold."""
        self.decided_at_ms = 0
        """The monotonic time when it was handed over for recording."""

    @property
    def is_empty(self) -> bool:
        """Nothing has to be recorded; such a decision needs no completion."""
        return not self.changes and self.start_offset is None

    def aim(
        self,
        batch: Batch,
        run: Run,
        state: RecordState,
        cause: Cause,
        member: str | None,
        condition: Condition | None = None,
    ) -> None:
        """The run gets this state when that is recorded. It is pending until then."""
        run.pending = True
        self.targets.append(_new_target((batch, run, state, condition)))
        self.add_change(
            run.first_offset, run.last_offset, state, run.delivery_count, cause, member, condition
        )

    def keep_held(self, batch: Batch, run: Run, condition: PendingAcknowledgement) -> None:
        """The run stays held under a condition, which is recorded: its acknowledgement waits for the end of a
        transaction.
        """
        run.pending = True
        self.targets.append(Target(batch, run, ACQUIRED, condition))
        self.add_change(
            run.first_offset,
            run.last_offset,
            AVAILABLE,
            run.delivery_count,
            Cause.NONE,
            condition.member,
            condition,
        )

    def take_back(self, runs: list[RunInBatch]) -> None:
        """The held runs become available with the targets, and are pending until then."""
        self.taken_back = runs
        for _, run in runs:
            run.pending = True

    def change_now(
        self,
        window: Window,
        batch: Batch,
        run: Run,
        state: RecordState,
        cause: Cause,
        condition: Condition | None = None,
    ) -> None:
        """An immediate change: gives the run its state, and adds the change."""
        owner = run.owner
        keeps_key = state is not AVAILABLE and cause not in _SEEN_IN_THE_LOG
        window.free(run, state, condition, keeps_key=keeps_key)
        if state is not AVAILABLE:
            run.pending, run.keeps_key = True, keeps_key
            self.given_up_runs.append((batch, run))
        if state is ARCHIVING:
            assert condition is not None, (run.first_offset, state)
            self.add_letter(run, condition)
        self.add_change(run.first_offset, run.last_offset, state, run.delivery_count, cause, owner, condition)

    def add_letter(self, run: Run, condition: Condition) -> None:
        """The records of the run become Archiving, with this condition."""
        self.letters.append(
            StateRange(run.first_offset, run.last_offset, ARCHIVING, run.delivery_count, condition=condition)
        )

    def add_change(
        self,
        base_offset: int,
        last_offset: int,
        state: RecordState,
        count: int,
        cause: Cause,
        member: str | None,
        condition: Condition | None = None,
    ) -> None:
        """Adds a change, and joins it to the newest one if they touch and are alike in everything."""
        changes = self.changes
        if state is ARCHIVED or state is ARCHIVING:
            self.gives_up = True
        if changes and changes[-1].last_offset + 1 == base_offset:
            newest = changes[-1]
            if newest[2:] == (state, count, cause, member, condition):
                changes[-1] = newest._replace(last_offset=last_offset)
                return
        changes.append(_new_change((base_offset, last_offset, state, count, cause, member, condition)))

    def withdraw(self) -> None:
        """Leaves the records that the targets would have changed as they were."""
        for target in self.targets:
            target.run.pending = False
        for _, run in self.taken_back:
            run.pending = False
        self.join_targets()

    def join_targets(self) -> None:
        """Joins runs that have become alike: once for each batch, whose runs lie together."""
        position = 0
        targets = self.targets
        while position < len(targets):
            batch, first_run, *_ = targets[position]
            last_run = first_run
            while position < len(targets) and targets[position].batch is batch:
                last_run = targets[position].run
                position += 1
            if len(batch.runs) > 1:
                batch.join(first_run.first_offset, last_run.last_offset)


_SEEN_IN_THE_LOG: Final = (Cause.GAP, Cause.TRANSACTION_ABORTED)
"""A record that ends for one of these causes is never delivered, recorded or not."""
