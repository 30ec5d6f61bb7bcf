"""The leaders' decisions by record: the causes with which the end of a run accounts for each record, and the
times before which no record may be delivered again.

An `ObservedLeader` is the real leader with an observer in front of its store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from barnabas.protocol.delivery_state import Cause, Due, RecordState
from barnabas.protocol.identity import SharePartitionKey
from barnabas.runtime.completion import Completion
from barnabas.share.leader.handout import FetchDemand, Handout
from barnabas.share.leader.recorded_changes import RecordedChange
from barnabas.share.leader.share_partition_leader import DecisionStore, SharePartitionLeader, Surroundings
from barnabas.share.partition.acquisition import AcquirePlan
from barnabas.share.partition.decision import Decision
from barnabas.storage.format.share_image import ShareStateImage
from barnabas.storage.log.partition_log import PartitionLog

# pyright: reportPrivateUsage=false


class Ended(NamedTuple):
    """Why a record becomes final."""

    cause: Cause | None
    delivery_count: int
    member_id: str | None


class Decisions:
    """Every decision that ended a record, whether or not it was recorded."""

    def __init__(self) -> None:
        self.ended: dict[SharePartitionKey, dict[int, list[Ended]]] = {}
        self.gone_below: dict[SharePartitionKey, int] = {}
        """The highest log start that a leader has applied. Records below it were given up, even if a crash
        brings them back into the log.
        """
        self.on_acquired: Callable[[SharePartitionLeader], None] = _ignore
        """Called after each acquisition."""
        self.on_early: Callable[[str], None] = _ignore
        """Called with a sentence about a record that a leader delivers before its due time."""
        self._due_ms: dict[SharePartitionLeader, dict[int, int]] = {}
        """The due times that each leader has had recorded, by offset, on the monotonic clock."""

    def note(self, key: SharePartitionKey, decision: Decision) -> None:
        ended = self.ended.setdefault(key, {})
        for change in decision.changes:
            if change.state is not RecordState.AVAILABLE:
                why = Ended(change.cause, change.delivery_count, change.member)
                for offset in range(change.base_offset, change.last_offset + 1):
                    ended.setdefault(offset, []).append(why)

    def note_due(self, leader: SharePartitionLeader, decision: Decision, recorded: Completion[None]) -> None:
        """Takes over the due times of a decision that is handed over now, once it is recorded."""
        due_times = leader.core._in_flight.due_times
        due_ms = {
            offset: due_times.monotonic_ms(change.condition.due_ms)
            for change in decision.changes
            if isinstance(change.condition, Due)
            for offset in range(change.base_offset, change.last_offset + 1)
        }

        def keep(ended: Completion[None]) -> None:
            if ended.error is None:
                self._due_ms.setdefault(leader, {}).update(due_ms)

        if due_ms:
            recorded.when_done(keep)

    def check_due(self, leader: SharePartitionLeader, handout: Handout) -> None:
        """No acquired record is still to wait, whether it was released or its lock has ended."""
        due_ms = self._due_ms.get(leader)
        if not due_ms:
            return
        now_ms = leader._surroundings.clock.monotonic_ms()
        for first_offset, last_offset, _ in handout.acquired:
            for offset in range(first_offset, last_offset + 1):
                if due_ms.pop(offset, now_ms) > now_ms:
                    self.on_early(f"{leader.group_id}: {offset} is delivered before it is due")

    def leader_class(self) -> type[SharePartitionLeader]:
        """A leader that reports its decisions here."""
        decisions = self

        class ObservedStore:
            def __init__(self, store: DecisionStore) -> None:
                self._store = store

            def record(self, leader: SharePartitionLeader, decision: Decision) -> Completion[None]:
                decisions.note(leader.key, decision)
                recorded = self._store.record(leader, decision)
                decisions.note_due(leader, decision, recorded)
                return recorded

            def last_changes(
                self, leader: SharePartitionLeader, wanted: Sequence[tuple[int, int]]
            ) -> list[RecordedChange]:
                return self._store.last_changes(leader, wanted)

        class ObservedLeader(SharePartitionLeader):
            def __init__(
                self,
                key: SharePartitionKey,
                log: PartitionLog,
                image: ShareStateImage,
                store: DecisionStore,
                surroundings: Surroundings,
            ) -> None:
                super().__init__(key, log, image, ObservedStore(store), surroundings)

            def follow_log_start(self) -> None:
                before = decisions.gone_below.get(self.key, 0)
                decisions.gone_below[self.key] = max(before, self.log.log_start_offset)
                super().follow_log_start()

            def acquire(self, plan: AcquirePlan, demand: FetchDemand) -> Handout:
                handout = super().acquire(plan, demand)
                decisions.on_acquired(self)
                decisions.check_due(self, handout)
                return handout

        return ObservedLeader


def _ignore(_: object) -> None:
    """No observer yet."""
