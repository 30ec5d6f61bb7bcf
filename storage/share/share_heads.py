"""Where the state of each share group begins in one log: the offset of its newest checkpoint.

It serves recovery as sketched beside KIP-932 ("Recovery and log cleaning"): a group's share checkpoint
offset (SCO), and the least of them, the earliest share offset (ESO). Control records below the ESO are
nobody's state any more and may be cleaned; those at or above it may not. Kept in step with every control
batch that is appended. What the checkpoints say is not its business.

A log that is opened takes the heads of its old segments from a file that is a hint: they are proven against
the share indexes before anything is removed or cleaned because of them (`share_head_recovery`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType


class ShareHeads:
    """The newest checkpoint's offset by group id. A deleted group has none."""

    __slots__ = ("_ended", "_live", "changed", "hinted_below")

    def __init__(self, hinted: Mapping[str, int] | None = None, *, hinted_below: int = 0) -> None:
        """`hinted` are heads below `hinted_below`, where some may be missing, outdated or deleted since."""
        self._live = dict(hinted or {})
        self.hinted_below = hinted_below
        """What lies below this offset is a hint; 0 once everything is known."""
        self._ended: set[str] = set()
        """Groups with a tombstone at or above `hinted_below`, whatever lies below it."""
        self.changed = False
        """Whether the share snapshot is to be written again."""

    @property
    def is_proven(self) -> bool:
        """Whether the heads are those of the log for sure."""
        return self.hinted_below == 0

    def note_checkpoint(self, group_id: str, checkpoint_offset: int, tombstone: bool) -> None:
        """Takes in a checkpoint, or the tombstone of a deleted group, that is behind all others of it."""
        if not tombstone:
            self._live[group_id] = checkpoint_offset
        else:
            self._live.pop(group_id, None)
            if not self.is_proven:
                self._ended.add(group_id)
        self.changed = True

    def may_have_state(self, group_id: str) -> bool:
        """Whether the group may have a live checkpoint in the log."""
        return group_id in self._live or not self.is_proven

    def earliest_offset(self, log_end_offset: int) -> int:
        """The ESO: the least SCO, or the end of the log where there is no group."""
        return min(self._live.values(), default=log_end_offset)

    def live(self) -> Mapping[str, int]:
        """The SCO of each group that has state here; a view that follows the heads."""
        return MappingProxyType(self._live)

    def prove(self, found: Mapping[str, int]) -> bool:
        """Replaces what was hinted by what the log says; whether that was the same.

        `found` has, of the groups whose newest control record below `hinted_below` is not a tombstone, the
        newest checkpoint there.
        """
        hinted = {group_id: offset for group_id, offset in self._live.items() if offset < self.hinted_below}
        behind = {group_id: offset for group_id, offset in self._live.items() if offset >= self.hinted_below}
        proven = {
            group_id: offset
            for group_id, offset in found.items()
            if group_id not in behind and group_id not in self._ended
        }
        # Changed in place: views of the heads follow.
        self._live.clear()
        self._live.update(proven | behind)
        self._ended.clear()
        self.hinted_below = 0
        self.changed |= proven != hinted
        return proven == hinted
