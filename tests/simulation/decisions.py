"""The leaders' decisions by record: the causes with which the end of a run accounts for each record, the
times before which no record may be delivered again, and the dead letters that became due.

An `ObservedLeader` is the real leader with an observer in front of its store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple
from uuid import UUID

from barnabas.protocol.delivery_state import Cause, Due, RecordState
from barnabas.protocol.identity import SharePartitionKey
from barnabas.runtime.completion import Completion
from barnabas.share.leader.handout import Handout
from barnabas.share.leader.recorded_changes import RecordedChange
from barnabas.share.leader.share_partition_leader import DecisionStore, LeaderServices, SharePartitionLeader
from barnabas.share.partition.acquisition import AcquirePlan, Demand
from barnabas.share.partition.decision import Decision
from barnabas.storage.format.share_image import ShareStateImage
from barnabas.storage.log.partition_log import PartitionLog

# pyright: reportPrivateUsage=false


class Ended(NamedTuple):
    """Why a record becomes final."""

    cause: Cause | None
    delivery_count: int
    member_id: str | None
    is_archiving: bool
    """Whether a dead letter is due first."""
    loss_count: int
    """The losses before this decision (`Decisions.note_loss`)."""


class Decisions:
    """Every decision that ended a record, whether or not it was recorded."""

    def __init__(self) -> None:
        self.ended: dict[SharePartitionKey, dict[int, list[Ended]]] = {}
        self.gone_below: dict[SharePartitionKey, int] = {}
        """The highest log start that a leader has applied. Records below it were given up, even if a crash
        brings them back into the log.
        """
        self.gone_unfinished: dict[SharePartitionKey, set[int]] = {}
        """The offsets at and behind the group's start offset when a log start passed them: no dead letter of
        theirs had to be written yet.
        """
        self.letters_due: dict[SharePartitionKey, dict[int, int]] = {}
        """How many times a dead letter of the record became due, by offset, whether or not that was recorded.
        """
        self.loss_count = 0
        """The times that power was lost although `log.flush` does not promise to survive that."""
        self.topic_names: dict[UUID, str] = {}
        """The names of all topics that had a leader."""
        self.on_acquired: Callable[[SharePartitionLeader, Handout], None] = _ignore
        """Called after each acquisition, with its records."""
        self.on_decided: Callable[[SharePartitionLeader, Decision], None] = _ignore
        """Called with each decision that is to be recorded."""
        self.on_early: Callable[[str], None] = _ignore
        """Called with a sentence about a record that a leader delivers before its due time."""
        self._due_ms: dict[SharePartitionLeader, dict[int, int]] = {}
        """The due times that each leader has had recorded, by offset, on the monotonic clock."""

    def note(self, key: SharePartitionKey, decision: Decision) -> None:
        due = self.letters_due.setdefault(key, {})
        for letter in decision.letters:
            for offset in range(letter.base_offset, letter.last_offset + 1):
                due[offset] = due.get(offset, 0) + 1
        ended = self.ended.setdefault(key, {})
        for change in decision.changes:
            if change.state is not RecordState.AVAILABLE:
                is_archiving = change.state is RecordState.ARCHIVING
                why = Ended(change.cause, change.delivery_count, change.member, is_archiving, self.loss_count)
                for offset in range(change.base_offset, change.last_offset + 1):
                    ended.setdefault(offset, []).append(why)

    def note_loss(self) -> None:
        """The power was lost, and any decision up to now may have been lost with it."""
        self.loss_count += 1

    def last_ended(self, key: SharePartitionKey, offset: int) -> list[Ended]:
        """The decisions that may be in force: the last one, or each of them if a loss came after it. Empty
        for a record that never ended.
        """
        ended = self.ended.get(key, {}).get(offset, [])
        is_lasting = bool(ended) and ended[-1].loss_count == self.loss_count
        return ended[-1:] if is_lasting else ended

    def note_due(self, leader: SharePartitionLeader, decision: Decision, recorded: Completion[None]) -> None:
        """Takes over the due times of a decision that is handed over now, once it is recorded. Those of
        records that were never delivered are checked by their timestamps (`timing_checks`).
        """
        due_times = leader.core.window.due_times
        due_ms = {
            offset: due_times.monotonic_ms(change.condition.due_ms)
            for change in decision.changes
            if isinstance(change.condition, Due) and change.delivery_count
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
        now_ms = leader._services.clock.monotonic_ms()
        for first_offset, last_offset, _ in handout.acquired:
            for offset in range(first_offset, last_offset + 1):
                if due_ms.pop(offset, now_ms) > now_ms:
                    self.on_early(f"{leader.group_id}: {offset} is delivered before it is due")

    def note_log_start(self, leader: SharePartitionLeader) -> None:
        """The leader is about to follow the start of its log."""
        log_start_offset = leader.log.log_start_offset
        before = self.gone_below.get(leader.key, 0)
        self.gone_below[leader.key] = max(before, log_start_offset)
        gone = self.gone_unfinished.setdefault(leader.key, set())
        gone.update(range(max(leader.core.spso, 0), log_start_offset))

    def leader_class(self) -> type[SharePartitionLeader]:
        """A leader that reports its decisions here."""
        decisions = self

        class ObservedStore:
            def __init__(self, store: DecisionStore) -> None:
                self._store = store

            def record(self, leader: SharePartitionLeader, decision: Decision) -> Completion[None]:
                decisions.note(leader.key, decision)
                decisions.on_decided(leader, decision)
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
                services: LeaderServices,
            ) -> None:
                super().__init__(key, log, image, ObservedStore(store), services)
                decisions.topic_names[key.topic_id] = log.topic_partition.topic

            def follow_log_start(self) -> None:
                decisions.note_log_start(self)
                super().follow_log_start()

            def acquire(self, plan: AcquirePlan, demand: Demand, upper_offset: int) -> Handout:
                handout = super().acquire(plan, demand, upper_offset)
                decisions.on_acquired(self, handout)
                decisions.check_due(self, handout)
                return handout

        return ObservedLeader


def _ignore(*_: object) -> None:
    """No observer yet."""
