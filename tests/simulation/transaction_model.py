"""Transactions, as their producers know them, and the records that readers of committed records may see.

A transaction is visible as a whole or not at all: as a whole if its commit is confirmed, not at all if it was
aborted or can only be aborted. If the answer to its end was lost, the first record that is seen or missed
decides for all others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from barnabas.protocol.identity import TopicIdPartition
from tests.simulation.model import Violation
from tests.simulation.offset_model import Commit, OffsetModel
from tests.simulation.ranges_model import RangesCommit, RangesModel


class Outcome(Enum):
    """The known outcome of a transaction."""

    OPEN = "open"
    ENDING = "to be committed, or is already"
    COMMITTED = "committed"
    ABORTED = "aborted"
    LOST = "lost or kept by a power failure without a promise"


@dataclass(slots=True, eq=False)
class Transaction:
    """One transaction of one producer. Times of the day are those of the machine."""

    name: str
    begun_wall_ms: int
    timeout_ms: int
    clock_changes: int
    """The number of times that the machine's clock had been set when it began."""
    outcome: Outcome = Outcome.OPEN
    records: dict[TopicIdPartition, dict[int, float]] = field(
        default_factory=dict[TopicIdPartition, dict[int, float]]
    )
    """The time when the record at an offset was confirmed."""
    offsets: list[tuple[OffsetModel, Commit]] = field(default_factory=list[tuple[OffsetModel, Commit]])
    ranges: list[tuple[RangesModel, RangesCommit]] = field(
        default_factory=list[tuple[RangesModel, RangesCommit]]
    )
    pending: dict[OffsetModel, float] = field(default_factory=dict[OffsetModel, float])
    """The time since when offsets are known to wait for its end."""
    at_commit: list[Callable[[float], None]] = field(default_factory=list[Callable[[float], None]])
    """Called with the time when all effects of its commit are known to be done."""
    is_begun: bool = False
    """A request of this transaction was sent."""

    def committing(self, now_ms: float) -> None:
        """The request to commit is about to be sent."""
        if self.outcome is Outcome.OPEN:
            self.outcome = Outcome.ENDING
            for _, commit in self._commits():
                commit.sent_ms = now_ms

    def abort(self) -> None:
        """It is aborted, or nothing can prevent that."""
        self._decide(Outcome.ABORTED)
        for model, commit in self.offsets:
            model.refuse(commit)
        for ranges_model, ranges_commit in self.ranges:
            ranges_model.refuse(ranges_commit)
        self.offsets.clear()
        self.ranges.clear()

    def commit(self) -> None:
        """It is committed."""
        self._decide(Outcome.COMMITTED)

    def complete(self, now_ms: float) -> None:
        """All effects of its end are done, if it was committed."""
        if self.outcome is Outcome.COMMITTED:
            for model, commit in self.offsets:
                model.confirm(commit, now_ms)
            for ranges_model, ranges_commit in self.ranges:
                ranges_model.confirm(ranges_commit, now_ms)
            for note in self.at_commit:
                note(now_ms)
            self.at_commit.clear()
        elif self.outcome is Outcome.ENDING:
            for _, ended in self._commits():
                ended.ended_ms = min(ended.ended_ms, now_ms)

    def _commits(self) -> list[tuple[object, Commit | RangesCommit]]:
        return [*self.offsets, *self.ranges]

    def saw(self, where: str) -> None:
        """A reader of committed records got one of its records."""
        if self.outcome in (Outcome.OPEN, Outcome.ABORTED):
            raise Violation(f"{where} is visible, but its transaction {self.name} is {self.outcome.value}")
        self.commit()

    def missed(self, where: str) -> None:
        """A reader of committed records read past one of its records without getting it."""
        if self.outcome is Outcome.COMMITTED:
            raise Violation(f"{where} is not visible, but its transaction {self.name} is committed")
        if self.outcome is Outcome.ENDING:
            self.abort()

    def _decide(self, outcome: Outcome) -> None:
        if self.outcome is Outcome.LOST:
            return
        if self.outcome in (Outcome.COMMITTED, Outcome.ABORTED) and outcome is not self.outcome:
            raise Violation(f"{self.name} is {outcome.value}, but was {self.outcome.value}")
        self.outcome = outcome

    def is_surely_open(self, wall_ms: int, clock_changes: int) -> bool:
        """Whether neither its producer nor the coordinator can have ended it."""
        return self.outcome is Outcome.OPEN and self.has_time(wall_ms, clock_changes)

    def has_time(self, wall_ms: int, clock_changes: int) -> bool:
        """Whether its timeout cannot have passed yet."""
        return wall_ms <= self.begun_wall_ms + self.timeout_ms and clock_changes == self.clock_changes


class TransactionsModel:
    """All transactions of a run."""

    def __init__(self) -> None:
        self.by_value: dict[bytes, Transaction] = {}
        """The transaction in which a record was sent."""
        self.all: list[Transaction] = []
        self._by_offset: dict[TopicIdPartition, dict[int, Transaction]] = {}
        """The transaction that a confirmed record belongs to."""
        self._open: list[Transaction] = []

    def begin(self, transaction: Transaction) -> None:
        self._open = [one for one in self._open if one.outcome is Outcome.OPEN]
        self._open.append(transaction)
        self.all.append(transaction)

    def confirm(
        self,
        transaction: Transaction,
        partition: TopicIdPartition,
        base_offset: int,
        count: int,
        now_ms: float,
    ) -> None:
        """Records of a transaction are in the log."""
        known = transaction.records.setdefault(partition, {})
        by_offset = self._by_offset.setdefault(partition, {})
        for offset in range(base_offset, base_offset + count):
            known[offset] = now_ms
            by_offset[offset] = transaction

    def pends(self, offsets: OffsetModel, *, sent_ms: float, wall_ms: int, clock_changes: int) -> bool:
        """Whether a request sent at `sent_ms` must have been answered that these offsets wait for a
        transaction.
        """
        return any(
            one.is_surely_open(wall_ms, clock_changes) and one.pending.get(offsets, sent_ms) < sent_ms
            for one in self._open
        )

    def at(self, partition: TopicIdPartition, offset: int) -> Transaction | None:
        """The transaction of the confirmed record at an offset."""
        return self._by_offset.get(partition, {}).get(offset)

    def check_stable_offset(
        self,
        partition: TopicIdPartition,
        last_stable_offset: int,
        *,
        sent_ms: float,
        wall_ms: int,
        clock_changes: int,
    ) -> None:
        """A response to a request sent at `sent_ms` had a last stable offset."""
        for transaction in self._open:
            if not transaction.is_surely_open(wall_ms, clock_changes):
                continue
            for offset, confirmed_ms in transaction.records.get(partition, {}).items():
                if confirmed_ms < sent_ms and offset < last_stable_offset:
                    raise Violation(
                        f"the last stable offset of {partition} is {last_stable_offset}, but {offset} of "
                        f"{transaction.name} is open"
                    )

    def lose(self) -> None:
        """Power was lost without a promise."""
        for transaction in self.all:
            transaction.outcome = Outcome.LOST
        self.all.clear()
        self._open.clear()
        self._by_offset.clear()
