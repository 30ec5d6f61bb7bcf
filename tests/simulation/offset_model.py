"""What a group has committed for one partition, as far as clients were told.

Each commit brings an offset that no other has, so that whoever fetches one tells which commit is in force. A
commit takes effect at some moment between its request and the end of it: its answer, or the end of the
process where there was none; one of a transaction's between the request for the end and the end. Out of that
follows which of two commits was the later one, or that it may be either.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from tests.simulation.model import Violation

NO_OFFSET = -1


@dataclass(slots=True, eq=False)
class Commit:
    """One commit. Times are inf as long as they cannot be told."""

    offset: int
    sent_ms: float
    """Before this it cannot be in force."""
    told_ms: float = inf
    """By now it has been in force: it was confirmed, or seen."""
    ended_ms: float = inf
    """If it is not in force by now, it will never be."""
    is_transactional: bool = False
    """Its transaction's end brings it into force, whichever process does that."""


class OffsetModel:
    """One partition of one group."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._next_offset = 0
        self._commits = [Commit(NO_OFFSET, -inf, -inf, -inf)]
        """Those that may be in force, or may come to be."""

    def send(self, sent_ms: float) -> Commit:
        """A commit is about to be sent; `sent_ms` is inf if it waits for the end of a transaction."""
        commit = Commit(self._next_offset, sent_ms, is_transactional=sent_ms == inf)
        self._next_offset += 1
        self._commits.append(commit)
        return commit

    def confirm(self, commit: Commit, now_ms: float) -> None:
        """It is, or was, in force: what ended before it was sent is not any more."""
        commit.told_ms = min(commit.told_ms, now_ms)
        commit.ended_ms = min(commit.ended_ms, now_ms)
        if commit in self._commits:
            self._commits = [one for one in self._commits if one.ended_ms >= commit.sent_ms]

    def refuse(self, commit: Commit) -> None:
        """It was refused, or its transaction aborted: it was never in force and will never be."""
        if commit.told_ms < inf:
            raise Violation(f"{self._name}: {commit.offset} was in force, and is refused now")
        if commit in self._commits:
            self._commits.remove(commit)

    def saw(self, offset: int, *, sent_ms: float, now_ms: float) -> None:
        """Somebody was told that this offset is in force, in answer to a request sent at `sent_ms`."""
        found = next((one for one in self._commits if one.offset == offset), None)
        if found is None or found.sent_ms > now_ms:
            raise Violation(f"{self._name}: {offset} is in force: refused, gone, or not yet committed")
        for other in self._commits:
            if other.told_ms < sent_ms and found.ended_ms < other.sent_ms:
                raise Violation(f"{self._name}: {offset} is in force again after {other.offset}")
        self.confirm(found, now_ms)

    def end_process(self, now_ms: float) -> None:
        """The process that commits were sent to has ended: what is under way will never take effect. What
        waits for the end of a transaction still may.
        """
        for commit in self._commits:
            if not commit.is_transactional:
                commit.ended_ms = min(commit.ended_ms, now_ms)

    def give_in(self, now_ms: float) -> None:
        """Power was lost without a promise for it: any commit may be the last that is left."""
        self._commits = [
            Commit(offset, -inf, ended_ms=now_ms) for offset in range(NO_OFFSET, self._next_offset)
        ]
