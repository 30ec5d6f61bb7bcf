"""The leaders' decisions by record: the causes with which the end of a run accounts for each record, and the
dead letters that became due.

An `ObservedLeader` is the real leader with an observer in front of its store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple
from uuid import UUID

from barnabas.protocol.delivery_state import Cause, RecordState
from barnabas.protocol.identity import SharePartitionKey
from barnabas.runtime.completion import Completion
from barnabas.share.leader.handout import FetchDemand, Handout
from barnabas.share.leader.recorded_changes import RecordedChange
from barnabas.share.leader.share_partition_leader import DecisionStore, SharePartitionLeader, Surroundings
from barnabas.share.partition.acquisition import AcquirePlan
from barnabas.share.partition.decision import Decision
from barnabas.storage.format.share_image import ShareStateImage
from barnabas.storage.log.partition_log import PartitionLog


class Ended(NamedTuple):
    """Why a record becomes final."""

    cause: Cause | None
    delivery_count: int
    member_id: str | None
    is_archiving: bool
    """Whether a dead letter is due first."""


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
        self.topic_names: dict[UUID, str] = {}
        """The names of all topics that had a leader."""
        self.on_acquired: Callable[[SharePartitionLeader], None] = _ignore
        """Called after each acquisition."""

    def note(self, key: SharePartitionKey, decision: Decision) -> None:
        due = self.letters_due.setdefault(key, {})
        for letter in decision.letters:
            for offset in range(letter.base_offset, letter.last_offset + 1):
                due[offset] = due.get(offset, 0) + 1
        ended = self.ended.setdefault(key, {})
        for change in decision.changes:
            if change.state is not RecordState.AVAILABLE:
                is_archiving = change.state is RecordState.ARCHIVING
                why = Ended(change.cause, change.delivery_count, change.member, is_archiving)
                for offset in range(change.base_offset, change.last_offset + 1):
                    ended.setdefault(offset, []).append(why)

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
                return self._store.record(leader, decision)

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
                decisions.topic_names[key.topic_id] = log.topic_partition.topic

            def follow_log_start(self) -> None:
                decisions.note_log_start(self)
                super().follow_log_start()

            def acquire(self, plan: AcquirePlan, demand: FetchDemand) -> Handout:
                handout = super().acquire(plan, demand)
                decisions.on_acquired(self)
                return handout

        return ObservedLeader


def _ignore(_leader: SharePartitionLeader) -> None:
    """No observer yet."""
