"""The offset that a group has committed for one partition, as far as clients know.

Each commit has an offset of its own, so a fetched offset identifies the commit in force. A commit takes
effect between its request and its end: its answer, or the end of the process if there was no answer. A commit
in a transaction takes effect between the request to end the transaction and the transaction's end. From these
times follows which of two commits is the later one, or that either may be.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from tests.simulation.model import Violation

NO_OFFSET = -1


@dataclass(slots=True, eq=False)
class Commit:
    """One commit. Times are inf while they are unknown."""

    offset: int
    sent_ms: float
    """It cannot be in force before this time."""
    told_ms: float = inf
    """It was in force by this time: it was confirmed, or seen."""
    ended_ms: float = inf
    """If it is not in force by this time, it never will be."""
    is_transactional: bool = False
    """The end of its transaction puts it into force, in this process or a later one."""


class OffsetModel:
    """One partition of one group."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._next_offset = 0
        self._commits = [Commit(NO_OFFSET, -inf, -inf, -inf)]
        """The commits that are in force or may still come into force."""

    def send(self, sent_ms: float) -> Commit:
        """A commit is about to be sent; `sent_ms` is inf if it waits for the end of a transaction."""
        commit = Commit(self._next_offset, sent_ms, is_transactional=sent_ms == inf)
        self._next_offset += 1
        self._commits.append(commit)
        return commit

    def confirm(self, commit: Commit, now_ms: float) -> None:
        """It is or was in force: commits that ended before it was sent are no longer in force."""
        commit.told_ms = min(commit.told_ms, now_ms)
        commit.ended_ms = min(commit.ended_ms, now_ms)
        if commit in self._commits:
            self._commits = [one for one in self._commits if one.ended_ms >= commit.sent_ms]

    def refuse(self, commit: Commit) -> None:
        """It was refused, or its transaction aborted: it was never in force and never will be."""
        if commit.told_ms < inf:
            raise Violation(f"{self._name}: {commit.offset} was in force, but is now refused")
        if commit in self._commits:
            self._commits.remove(commit)

    def saw(self, offset: int, *, sent_ms: float, now_ms: float) -> None:
        """A client fetched this offset, with a request sent at `sent_ms`."""
        found = next((one for one in self._commits if one.offset == offset), None)
        if found is None or found.sent_ms > now_ms:
            raise Violation(f"{self._name}: {offset} is in force: refused, gone, or not yet committed")
        for other in self._commits:
            if other.told_ms < sent_ms and found.ended_ms < other.sent_ms:
                raise Violation(f"{self._name}: {offset} is in force again after {other.offset}")
        self.confirm(found, now_ms)

    def end_process(self, now_ms: float) -> None:
        """The process that got the commits has ended: commits under way never take effect, except those that
        wait for the end of a transaction.
        """
        for commit in self._commits:
            if not commit.is_transactional:
                commit.ended_ms = min(commit.ended_ms, now_ms)

    def give_in(self, now_ms: float) -> None:
        """Power was lost without a promise for the commits: any of them may be the last one left."""
        self._commits = [
            Commit(offset, -inf, ended_ms=now_ms) for offset in range(NO_OFFSET, self._next_offset)
        ]
