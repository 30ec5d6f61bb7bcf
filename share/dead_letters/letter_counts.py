"""The counts of dead letters by group, and the log lines about letters that cannot be written.

A group's counts live until the broker ends, or until more than GROUPS_MAX groups have some: then the oldest
counts begin again at 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from barnabas.runtime.logging import get_logger

log = get_logger("share")

GROUPS_MAX: Final = 10_000


@dataclass(slots=True)
class GroupLetterCounts:
    """One group's letters."""

    written: int = 0
    """Letters written, those among them that were found after a restart."""
    lost: int = 0
    """Records archived without a letter."""
    appends: int = 0
    """Batches of letters that were appended, or should have been."""
    failed_attempts: int = 0
    """Attempts to write letters that have failed, for any reason."""
    reason: str | None = None
    """The reason why letters are held now; None once one is written."""


class LetterCounts:
    """The counts of all groups of one broker."""

    def __init__(self) -> None:
        self.by_group: dict[str, GroupLetterCounts] = {}

    def appending(self, group_id: str) -> None:
        """A batch is about to be appended."""
        self._of(group_id).appends += 1

    def written(self, group_id: str, count: int) -> None:
        """Letters were written, and nothing holds the others back any more."""
        counts = self._of(group_id)
        counts.written += count
        if counts.reason is not None:
            counts.reason = None
            log.info("dead letters can be written again", group=group_id)

    def found(self, group_id: str, count: int) -> None:
        """Letters of an earlier leader were found in their topic."""
        if count:
            self._of(group_id).written += count

    def lost(self, group_id: str, count: int) -> None:
        """Records were archived without letters."""
        counts = self._of(group_id)
        counts.lost += count
        counts.reason = None

    def failed(self, group_id: str) -> None:
        """An attempt has failed."""
        self._of(group_id).failed_attempts += 1

    def held(self, group_id: str, reason: str) -> None:
        """The records wait for another attempt. The log has one line for each reason."""
        counts = self._of(group_id)
        if counts.reason != reason:
            counts.reason = reason
            log.warning(
                "dead letters cannot be written, and their records wait", group=group_id, reason=reason
            )

    def _of(self, group_id: str) -> GroupLetterCounts:
        counts = self.by_group.get(group_id)
        if counts is None:
            if len(self.by_group) >= GROUPS_MAX:
                del self.by_group[next(iter(self.by_group))]
            counts = self.by_group[group_id] = GroupLetterCounts()
        return counts
