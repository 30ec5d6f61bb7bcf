"""Transactional commits of ranges that wait until they reach the stable offset, and the choice of the next
one to answer. Pure.

A commit *reaches* the stable offset of a partition if its lowest offset touches it, or touches offsets that
do: ranges in force, ranges in open transactions, and ranges of other commits that wait. Waiting commits that
together reach the stable offset of every partition that they name are answered together, the lowest offset
first. So the member with the lowest offset of a partition never waits for others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from barnabas.coordinator.offsets.committed_offset import OffsetKey
from barnabas.coordinator.offsets.requests import TransactionalCommit
from barnabas.protocol.committed_ranges import OffsetRange
from barnabas.protocol.errors import ErrorCode
from barnabas.runtime.completion import Completion

Ranges = Mapping[OffsetKey, Sequence[OffsetRange]]
"""Merged ranges by partition, at least one each."""


class Reach(NamedTuple):
    """The stable offset of a partition now, and after some ranges."""

    stable_offset: int
    reached_offset: int


class WaitingCommit:
    """A commit, and the completion of its answer."""

    def __init__(self, commit: TransactionalCommit, ranges: Ranges) -> None:
        self.commit = commit
        self.ranges = ranges
        self.reply: Completion[list[ErrorCode]] = Completion()
        self.may_wait = True
        """False once a request waits behind the commit."""
        self.is_being_written = False
        """Then only the outcome of the write answers it."""

    @property
    def group_id(self) -> str:
        return self.commit.request.group_id

    @property
    def lowest_offset(self) -> int:
        return min(ranges[0].first_offset for ranges in self.ranges.values())

    def reaches(self, reach_of: Mapping[OffsetKey, Reach]) -> bool:
        """Whether it reaches the stable offset of each of its partitions."""
        return all(_touches(ranges, reach_of[key]) for key, ranges in self.ranges.items())


def _touches(ranges: Sequence[OffsetRange], reach: Reach) -> bool:
    first_offset = next(
        (
            offset_range.first_offset
            for offset_range in ranges
            if offset_range.last_offset > reach.stable_offset
        ),
        reach.stable_offset,
    )
    return first_offset <= reach.reached_offset + 1


def next_to_answer(
    waiting: Sequence[WaitingCommit], reach: Callable[[OffsetKey, Sequence[OffsetRange]], Reach]
) -> WaitingCommit | None:
    """The first of the commits that together reach the stable offset; None if there is none.

    `reach` returns the reach of a partition with these ranges besides those that it has.
    """
    left = list(waiting)
    while left:
        together: dict[OffsetKey, list[OffsetRange]] = {}
        for commit in left:
            for key, ranges in commit.ranges.items():
                together.setdefault(key, []).extend(ranges)
        reach_of = {key: reach(key, ranges) for key, ranges in together.items()}
        reaching = [commit for commit in left if commit.reaches(reach_of)]
        if len(reaching) == len(left):
            return min(left, key=lambda commit: commit.lowest_offset)
        left = reaching
    return None


class WaitingCommits:
    """Commits of all groups that are queued or wait, in the order of their arrival."""

    def __init__(self) -> None:
        self._by_group: dict[str, list[WaitingCommit]] = {}

    def __iter__(self) -> Iterator[WaitingCommit]:
        for waiting in self._by_group.values():
            yield from waiting

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._by_group

    def of_group(self, group_id: str) -> list[WaitingCommit]:
        return list(self._by_group.get(group_id, ()))

    def find(self, commit: TransactionalCommit) -> WaitingCommit | None:
        return next(
            (waiting for waiting in self.of_group(commit.request.group_id) if waiting.commit is commit), None
        )

    def has(self, wanted: WaitingCommit) -> bool:
        return any(waiting is wanted for waiting in self._by_group.get(wanted.group_id, ()))

    def range_count(self, key: OffsetKey) -> int:
        """The waiting ranges of a partition."""
        return sum(len(waiting.ranges.get(key, ())) for waiting in self._by_group.get(key.group_id, ()))

    def add(self, waiting: WaitingCommit) -> None:
        self._by_group.setdefault(waiting.group_id, []).append(waiting)

    def remove(self, removed: WaitingCommit) -> None:
        """Does nothing if it does not wait."""
        left = [waiting for waiting in self._by_group.pop(removed.group_id, ()) if waiting is not removed]
        if left:
            self._by_group[removed.group_id] = left
