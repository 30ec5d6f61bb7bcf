"""The promises to a group whose members share partitions by hashes of keys, and commit ranges of offsets.

`membership_model` has the owners of the hashes, `ranges_model` the committed offsets. Here are the open
transactions that hold a share back, and the output of members that consume, process and produce: each record
has one result, and the results of a key are in the order of its records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from math import inf
from typing import NamedTuple

from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_keys.hash_range import HashRange
from tests.simulation.membership_model import ReconciliationModel
from tests.simulation.model import Violation
from tests.simulation.ranges_model import RangesModel
from tests.simulation.transaction_model import Transaction


@dataclass(slots=True, eq=False)
class OpenCommit:
    """Ranges that a member commits in a transaction."""

    member: str
    partition: TopicIdPartition
    hashes: HashRange
    transaction: Transaction
    offsets: frozenset[int]
    told_ms: float = inf
    """When the commit was confirmed."""
    may_have_ended: bool = False
    """The transaction's end was requested, or its producer was replaced."""

    def is_surely_open(self, wall_ms: int, clock_changes: int) -> bool:
        return not self.may_have_ended and self.transaction.has_time(wall_ms, clock_changes)


class Result(NamedTuple):
    """The output record for one input record."""

    source: TopicIdPartition
    offset: int
    key: bytes | None
    reset_count: int
    """The resets of the group's offsets before it was committed; odd if one of them was under way."""
    transaction: Transaction


class SharingModel:
    """One group."""

    def __init__(self, group_id: str) -> None:
        self.name = group_id
        self.members = ReconciliationModel(group_id)
        self.is_exact = True
        """False after a power failure without a promise: some results may be missing or repeated."""
        self.unfinished: dict[str, list[Transaction]] = {}
        """By transactional id, the transactions whose effects may not be done."""
        self._skipped: dict[TopicIdPartition, set[int]] = {}
        """Offsets that an administrator may have skipped."""
        self._ranges: dict[TopicIdPartition, RangesModel] = {}
        self._numbers = count()
        self._open: list[OpenCommit] = []
        self._results: dict[bytes, Result] = {}

    def new_number(self) -> int:
        """A number for a name that no other transaction or result has."""
        return next(self._numbers)

    def ranges(self, partition: TopicIdPartition) -> RangesModel:
        name = f"{self.name}/{partition.topic_id.hex[:4]}-{partition.partition}"
        return self._ranges.setdefault(partition, RangesModel(name))

    def skip(self, partition: TopicIdPartition, next_offset: int) -> None:
        """An administrator sets the offset, perhaps ahead."""
        self._skipped.setdefault(partition, set()).update(range(next_offset))

    # Open transactions

    def opens(
        self,
        member: str,
        shares: Mapping[TopicIdPartition, HashRange],
        offsets: Mapping[TopicIdPartition, Sequence[int]],
        transaction: Transaction,
    ) -> list[OpenCommit]:
        """A member is about to commit ranges in a transaction: these offsets of its shares."""
        commits = [
            OpenCommit(member, one, hashes, transaction, frozenset(offsets[one]))
            for one, hashes in shares.items()
        ]
        self._open += commits
        return commits

    def may_end(self, transaction: Transaction) -> None:
        """The end of the transaction is about to be requested, also by a new producer."""
        for commit in self._open:
            if commit.transaction is transaction:
                commit.may_have_ended = True

    def may_reset(self, partition: TopicIdPartition) -> None:
        """An ordinary commit or a deletion is about to be sent, which also ends pending commits."""
        for commit in self._open:
            if commit.partition == partition:
                commit.may_have_ended = True

    def concluded(self, transaction: Transaction) -> None:
        """All effects of the end of the transaction are done."""
        self._open = [one for one in self._open if one.transaction is not transaction]

    def check_handover(
        self,
        member: str,
        shares: Mapping[TopicIdPartition, HashRange],
        *,
        sent_ms: float,
        now_ms: float,
        wall_ms: int,
        clock_changes: int,
    ) -> None:
        """The answer to a heartbeat sent at `sent_ms` has given these shares to a member that had not had
        them: the transactions of their last owners must have ended.

        That does not matter for offsets that another member has committed as well, as those of markers: they
        are in force, with any end of the transaction.
        """
        for commit in self._open:
            hashes = shares.get(commit.partition)
            if hashes is None or not hashes.overlaps(commit.hashes) or commit.told_ms >= sent_ms:
                continue
            if commit.member == member:
                continue  # It has joined again; it cannot read the offsets yet, see `check_stable`.
            if self.ranges(commit.partition).may_be_in_force(commit.offsets, now_ms):
                continue
            if commit.is_surely_open(wall_ms, clock_changes):
                raise Violation(
                    f"{self.name}: {commit.partition} goes to {member} before {commit.transaction.name} of "
                    f"{commit.member} has ended"
                )

    def check_stable(
        self, member: str, partition: TopicIdPartition, *, sent_ms: float, wall_ms: int, clock_changes: int
    ) -> None:
        """A member got stable offsets with a request sent at `sent_ms`: none of its own may be pending."""
        for commit in self._open:
            is_own = commit.member == member and commit.partition == partition
            if is_own and commit.told_ms < sent_ms and commit.is_surely_open(wall_ms, clock_changes):
                raise Violation(
                    f"{self.name}: {member} reads offsets of {partition} while its own transaction is open"
                )

    def check_unstable(
        self, reader: str, partition: TopicIdPartition, *, sent_ms: float, now_ms: float
    ) -> None:
        """The answer to a request sent at `sent_ms` was UNSTABLE_OFFSET_COMMIT."""
        if self.is_exact and not any(
            one.partition == partition
            and (
                one.member == reader
                or not self.members.surely_holds(one.member, partition, sent_ms=sent_ms, now_ms=now_ms)
            )
            for one in self._open
        ):
            raise Violation(f"{self.name}: {partition} is unstable, but no former owner has a transaction")

    # Results

    def sends(self, results: Mapping[bytes, Result]) -> None:
        """Results are about to be sent, by their values."""
        self._results.update(results)

    def check_results(self, values: Sequence[bytes]) -> None:
        """These results are visible to readers of committed records, in this order, and all are done."""
        visible = [self._results[value] for value in values]
        for result in visible:
            result.transaction.saw(f"the result for {result.source} {result.offset}")
        for value in self._results.keys() - set(values):
            result = self._results[value]
            result.transaction.missed(f"the result for {result.source} {result.offset}")
        _check_each_once_in_order(visible)

    def check_complete(self, values: Iterable[bytes], expected: Mapping[TopicIdPartition, set[int]]) -> None:
        """Each of the expected records has a result."""
        for partition, skipped in self._skipped.items():
            expected[partition].difference_update(skipped)
        for value in values:
            expected[self._results[value].source].discard(self._results[value].offset)
        for partition, offsets in expected.items():
            if offsets:
                raise Violation(f"{self.name}: {partition} {min(offsets)} was skipped")

    # Ends

    def end_process(self, now_ms: float) -> None:
        """A process of the broker has ended."""
        for ranges in self._ranges.values():
            ranges.end_process(now_ms)

    def give_in(self) -> None:
        """Power was lost without a promise."""
        self.is_exact = False
        self.members.forget()
        self._open.clear()
        for ranges in self._ranges.values():
            ranges.give_in()


def _check_each_once_in_order(results: Iterable[Result]) -> None:
    last: dict[tuple[TopicIdPartition, int, bytes], int] = {}
    seen: set[tuple[TopicIdPartition, int, int]] = set()
    for one in results:
        if one.reset_count % 2:
            continue
        place = (one.source, one.reset_count, one.offset)
        if place in seen:
            raise Violation(f"{one.source} {one.offset} has two results")
        seen.add(place)
        if one.key is None:
            continue
        key = (one.source, one.reset_count, one.key)
        if last.get(key, -1) > one.offset:
            raise Violation(f"the result for {one.source} {one.offset} comes after that for {last[key]}")
        last[key] = one.offset


def reset_count_of(ranges: RangesModel) -> int:
    """The number of resets of a partition; odd while one is under way."""
    return 2 * ranges.reset_count + ranges.is_being_reset
