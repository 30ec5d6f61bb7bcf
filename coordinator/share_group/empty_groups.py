"""Deletes share groups that have been empty for too long (`group.share.empty.retention.ms`, which Kafka does
not have).

Apache Kafka keeps an empty share group for ever, and with it the log segments that its state needs. Barnabas
may delete it with its state, as an administrator would. The time counts from the first check that finds the
group empty. It is not stored, so it counts again from a start of the broker, from each join, and from each
change of the group's offsets by an administrator. Groups are checked in intervals, so a group is deleted late
by up to a tenth of the time, at most a minute, and never early. A group that cannot be deleted is tried again
after the others have had their turn. Pure: times are monotonic milliseconds and are passed in.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from barnabas.coordinator.share_group.share_group import ShareGroup

LOOK_INTERVAL_MAX_MS = 60_000
"""The longest time between two checks."""
DELETIONS_PER_LOOK_MAX = 20
"""Groups to delete per check; each deletion costs an append to every log that has state of the group."""

_LOOKS_PER_RETENTION = 10


class EmptyGroups:
    """Finds the groups that are due. A negative retention keeps all groups."""

    __slots__ = ("_interval_ms", "_last_taken", "_look_at_ms", "_retention_ms", "_under_way")

    def __init__(self, retention_ms: int) -> None:
        self._retention_ms = retention_ms
        self._interval_ms = min(max(retention_ms // _LOOKS_PER_RETENTION, 1), LOOK_INTERVAL_MAX_MS)
        self._look_at_ms: int | None = None
        self._last_taken = ""
        """The group id at which the last turn ended; the next turn begins after it."""
        self._under_way: set[str] = set()
        """The groups whose deletions have begun and not ended."""

    def begin(self, now_ms: int) -> None:
        """Groups were loaded: they are checked from now on."""
        if self._retention_ms >= 0 and self._look_at_ms is None:
            self._look_at_ms = now_ms

    def next_deadline_ms(self) -> int | None:
        """When to check; None if groups are never deleted."""
        return self._look_at_ms

    def due(self, groups: Iterable[ShareGroup], now_ms: int) -> list[str]:
        """The ids of the groups to delete now, if a check is due. Call `ended` for each.

        Leaves out a group whose deletion is under way; one whose deletion failed is due again, in turn.
        """
        if self._look_at_ms is None or now_ms < self._look_at_ms:
            return []
        self._look_at_ms = now_ms + self._interval_ms
        overdue = {group.group_id for group in groups if self._is_overdue(group, now_ms)}
        taken = self._take_turn(sorted(overdue - self._under_way))
        self._under_way.update(taken)
        return taken

    def ended(self, group_id: str) -> None:
        """The group's deletion has ended, in success or failure."""
        self._under_way.discard(group_id)

    def _take_turn(self, group_ids: list[str]) -> list[str]:
        """The next of these ascending ids after those of the last turn; then it continues with the first."""
        turn = bisect_right(group_ids, self._last_taken)
        taken = [*group_ids[turn:], *group_ids[:turn]][:DELETIONS_PER_LOOK_MAX]
        if taken:
            self._last_taken = taken[-1]
        return taken

    def _is_overdue(self, group: ShareGroup, now_ms: int) -> bool:
        if group.members:
            return False
        if group.soft.empty_since_ms is None:
            group.soft.empty_since_ms = now_ms
        return now_ms - group.soft.empty_since_ms >= self._retention_ms
