"""The leaders' decisions by record: the causes with which the end of a run accounts for each record.

An `ObservedLeader` is the real leader with an observer in front of its store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

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

    def note(self, key: SharePartitionKey, decision: Decision) -> None:
        ended = self.ended.setdefault(key, {})
        for change in decision.changes:
            if change.state is not RecordState.AVAILABLE:
                why = Ended(change.cause, change.delivery_count, change.member)
                for offset in range(change.base_offset, change.last_offset + 1):
                    ended.setdefault(offset, []).append(why)

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

            def follow_log_start(self) -> None:
                before = decisions.gone_below.get(self.key, 0)
                decisions.gone_below[self.key] = max(before, self.log.log_start_offset)
                super().follow_log_start()

            def acquire(self, plan: AcquirePlan, demand: FetchDemand) -> Handout:
                handout = super().acquire(plan, demand)
                decisions.on_acquired(self)
                return handout

        return ObservedLeader


def _ignore(_leader: SharePartitionLeader) -> None:
    """No observer yet."""
