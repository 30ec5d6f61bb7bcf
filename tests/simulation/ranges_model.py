"""The offsets that a group has committed individually in one partition, as far as clients know.

A commit without an answer is in force as a whole or not at all. One in a transaction can be in force only
after the request to commit that transaction. A reset, or an ordinary commit, takes all earlier commits out of
force, also those of open transactions. While its outcome is unknown, answers are not checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from barnabas.protocol.committed_ranges import OffsetRange, merged
from tests.simulation.model import Violation


@dataclass(slots=True, eq=False)
class RangesCommit:
    """One commit of some offsets. Times are inf while they are unknown."""

    offsets: frozenset[int]
    sent_ms: float
    """It cannot be in force before this time."""
    reset_count: int
    """The resets before it."""
    told_ms: float = inf
    """It was in force by this time: it was confirmed, or seen."""
    ended_ms: float = inf
    """If it is not in force by this time, it never will be."""
    is_transactional: bool = False
    """The end of its transaction puts it into force, in this process or a later one."""

    @property
    def ranges(self) -> list[OffsetRange]:
        return merged((one, one) for one in self.offsets)


class Look(NamedTuple):
    """A request for the committed offsets that is about to be sent."""

    sent_ms: float
    changes: int
    certain: Set[int]
    """The offsets that the answer must have."""


class RangesModel:
    """One partition of one group."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.reset_count = 0
        self._certain: set[int] = set()
        self._doubtful: set[int] = set()
        """Offsets that may be in force, or not, for a reason other than a commit in `_open`."""
        self._ever: set[int] = set()
        self._ever_since_reset: set[int] = set()
        self._open: list[RangesCommit] = []
        """The commits that may be in force or may still come into force."""
        self._resets_under_way = 0
        self._sent_during_reset: list[RangesCommit] = []
        self._changes = 0

    @property
    def is_being_reset(self) -> bool:
        """Whether the effect of a reset is unknown at present."""
        return self._resets_under_way > 0

    # Commits

    def send(self, offsets: Iterable[int], sent_ms: float) -> RangesCommit:
        """A commit is about to be sent; `sent_ms` is inf if it waits for the end of a transaction."""
        commit = RangesCommit(frozenset(offsets), sent_ms, self.reset_count, is_transactional=sent_ms == inf)
        self._open.append(commit)
        self._ever |= commit.offsets
        self._ever_since_reset |= commit.offsets
        if self.is_being_reset:
            self._sent_during_reset.append(commit)
        return commit

    def confirm(self, commit: RangesCommit, now_ms: float) -> None:
        """It is in force, unless a reset has followed."""
        commit.told_ms = min(commit.told_ms, now_ms)
        commit.ended_ms = min(commit.ended_ms, now_ms)
        if commit in self._open:
            self._open.remove(commit)
        if commit.reset_count == self.reset_count:
            self._certain |= commit.offsets

    def refuse(self, commit: RangesCommit) -> None:
        """It was refused, or its transaction aborted: it was never in force and never will be."""
        if commit.told_ms < inf:
            raise Violation(f"{self._name}: {commit.ranges} was in force, but is now refused")
        if commit in self._open:
            self._open.remove(commit)

    def reached(self, commit: RangesCommit) -> None:
        """A commit that had to wait for the stable offset was answered: all offsets before it are committed,
        or are to be committed by others.
        """
        missing = set(range(min(commit.offsets, default=0))) - self._ever_since_reset
        if missing and commit.reset_count == self.reset_count and not self.is_being_reset:
            raise Violation(f"{self._name}: {commit.ranges} did not wait for {min(missing)}")

    # Answers

    def look(self, now_ms: float) -> Look:
        return Look(now_ms, self._changes, frozenset(self._certain))

    def saw(self, found: Set[int], look: Look, now_ms: float) -> None:
        """The answer to `look` has exactly these committed offsets."""
        if self.is_being_reset or look.changes != self._changes:
            return
        forgotten = look.certain - found
        if forgotten:
            raise Violation(f"{self._name}: the committed offset {min(forgotten)} is forgotten")
        unknown = found - self._possible(now_ms)
        if unknown:
            raise Violation(f"{self._name}: {min(unknown)} is committed, but no commit of it is in force")
        for commit in [one for one in self._open if one.sent_ms <= now_ms]:
            self._decide(commit, found, look, now_ms)

    def _decide(self, commit: RangesCommit, found: Set[int], look: Look, now_ms: float) -> None:
        """Learns the outcome of a commit without an answer from the offsets that only it has."""
        own = commit.offsets - self._possible(now_ms, besides=commit)
        if own and own <= found:
            self.confirm(commit, now_ms)
        elif own & found:
            raise Violation(f"{self._name}: {commit.ranges} is in force in part")
        elif own and commit.ended_ms < look.sent_ms:
            self._open.remove(commit)

    def may_be_in_force(self, offsets: Set[int], now_ms: float) -> bool:
        """Whether all of these offsets may be committed at present."""
        return offsets <= self._possible(now_ms)

    def _possible(self, now_ms: float, besides: RangesCommit | None = None) -> Set[int]:
        sent = (one.offsets for one in self._open if one.sent_ms <= now_ms and one is not besides)
        return self._certain.union(self._doubtful, *sent)

    # Resets

    def begin_reset(self) -> None:
        """An ordinary commit or a deletion is about to be sent."""
        self._resets_under_way += 1
        self._changes += 1

    def end_reset(self, next_offset: int | None) -> None:
        """Everything before this offset is committed now, and nothing else; None if the reset was refused."""
        self._resets_under_way -= 1
        if next_offset is not None:
            self._begin_anew(range(next_offset))
            self._doubtful = {offset for one in self._sent_during_reset for offset in one.offsets}
            self._ever_since_reset |= self._doubtful
        if not self.is_being_reset:
            self._sent_during_reset.clear()

    def lose_reset(self, next_offset: int) -> None:
        """A reset got no answer: it has an effect, will have one, or has none."""
        self._resets_under_way -= 1
        self._ever.update(range(next_offset))
        self.give_in()

    def give_in(self) -> None:
        """Nothing is certain any longer: any commit may be in force."""
        self._begin_anew(())
        self._doubtful = set(self._ever)
        self._ever_since_reset |= self._ever

    def end_process(self, now_ms: float) -> None:
        """The process that got the commits has ended: commits under way never take effect, except those that
        wait for the end of a transaction.
        """
        for commit in self._open:
            if not commit.is_transactional:
                commit.ended_ms = min(commit.ended_ms, now_ms)

    def _begin_anew(self, certain: Iterable[int]) -> None:
        self.reset_count += 1
        self._changes += 1
        self._certain = set(certain)
        self._ever |= self._certain
        self._ever_since_reset = set(self._certain)
        self._doubtful = set()
        self._open.clear()
