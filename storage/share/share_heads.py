"""The heads of the share groups in one log: the offset of each group's newest checkpoint.

They serve recovery as sketched beside KIP-932 ("Recovery and log cleaning"): a group's head is its share
checkpoint offset (SCO), and the lowest head is the earliest share offset (ESO). No group needs control
records below the ESO, so they may be cleaned; those at or above it may not. Every appended checkpoint and
tombstone updates the heads. The content of the checkpoints is not read here.

When a log is opened, the heads of its old segments come from a file that is only a hint. They are proven
against the share indexes before anything is removed or cleaned because of them (`share_head_recovery`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType


class ShareHeads:
    """The newest checkpoint's offset by group id. A deleted group has none."""

    __slots__ = ("_ended", "_live", "changed", "hinted_below")

    def __init__(self, hinted: Mapping[str, int] | None = None, *, hinted_below: int = 0) -> None:
        """`hinted` are heads below `hinted_below`; some may be missing there, outdated or deleted since."""
        self._live = dict(hinted or {})
        self.hinted_below = hinted_below
        """Heads below this offset are hints; 0 once all heads are proven."""
        self._ended: set[str] = set()
        """Groups with a tombstone at or above `hinted_below`; their hinted heads do not count."""
        self.changed = False
        """Whether the share snapshot must be written again."""

    @property
    def is_proven(self) -> bool:
        """Whether no head is a hint."""
        return self.hinted_below == 0

    def note_checkpoint(self, group_id: str, checkpoint_offset: int, tombstone: bool) -> None:
        """Notes the newest checkpoint of a group, or the tombstone of a deleted group."""
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
        """The ESO: the lowest SCO, or the end of the log without groups."""
        return min(self._live.values(), default=log_end_offset)

    def live(self) -> Mapping[str, int]:
        """The SCO of each group that has state here; a view that follows the heads."""
        return MappingProxyType(self._live)

    def prove(self, found: Mapping[str, int]) -> bool:
        """Replaces the hinted heads by those in the log; returns whether they were equal.

        `found` has each group's newest checkpoint below `hinted_below`, without groups whose newest
        checkpoint there is a tombstone.
        """
        hinted = {group_id: offset for group_id, offset in self._live.items() if offset < self.hinted_below}
        behind = {group_id: offset for group_id, offset in self._live.items() if offset >= self.hinted_below}
        proven = {
            group_id: offset
            for group_id, offset in found.items()
            if group_id not in behind and group_id not in self._ended
        }
        # Changed in place, because `live` returns a view.
        self._live.clear()
        self._live.update(proven | behind)
        self._ended.clear()
        self.hinted_below = 0
        self.changed |= proven != hinted
        return proven == hinted
