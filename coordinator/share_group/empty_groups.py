"""Which share groups have been empty for too long (`group.share.empty.retention.ms`, a setting of ours).

Apache Kafka keeps an empty share group for ever, and what its state pins in the logs with it. Here it may end
with its state, as if an administrator had deleted it. The time counts from the first look that finds the
group empty: it is not written anywhere, so that it counts anew from the start of the broker, from each join,
and from each change of the group's offsets by an administrator. Groups are looked at now and then, so one
goes up to a tenth of the time late, at most a minute, and never early. One that cannot be deleted is tried
again when the others have had their turn. Pure: times are monotonic milliseconds and come in.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from barnabas.coordinator.share_group.share_group import ShareGroup

LOOK_INTERVAL_MAX_MS = 60_000
"""How long at most until the groups are looked at again."""
DELETIONS_PER_LOOK_MAX = 20
"""So many groups go at a time; each costs an append to every log that has state of it."""

_LOOKS_PER_RETENTION = 10


class EmptyGroups:
    """When to look at the groups, and which of them are due. A negative retention keeps all."""

    __slots__ = ("_interval_ms", "_last_taken", "_look_at_ms", "_retention_ms", "_under_way")

    def __init__(self, retention_ms: int) -> None:
        self._retention_ms = retention_ms
        self._interval_ms = min(max(retention_ms // _LOOKS_PER_RETENTION, 1), LOOK_INTERVAL_MAX_MS)
        self._look_at_ms: int | None = None
        self._last_taken = ""
        """The group id at which the last turn ended; the next one begins behind it."""
        self._under_way: set[str] = set()
        """The groups whose deletions have begun and not ended."""

    def begin(self, now_ms: int) -> None:
        """Groups were loaded: they are looked at from now on."""
        if self._retention_ms >= 0 and self._look_at_ms is None:
            self._look_at_ms = now_ms

    def next_deadline_ms(self) -> int | None:
        """When to look; None if nothing ever goes."""
        return self._look_at_ms

    def due(self, groups: Iterable[ShareGroup], now_ms: int) -> list[str]:
        """The ids of the groups to delete now, if it is time to look; `ended` has to follow for each.

        A group whose deletion is under way is passed over; one whose deletion failed is due again, in turn.
        """
        if self._look_at_ms is None or now_ms < self._look_at_ms:
            return []
        self._look_at_ms = now_ms + self._interval_ms
        overdue = {group.group_id for group in groups if self._is_overdue(group, now_ms)}
        taken = self._take_turn(sorted(overdue - self._under_way))
        self._under_way.update(taken)
        return taken

    def ended(self, group_id: str) -> None:
        """The group's deletion has ended, well or badly."""
        self._under_way.discard(group_id)

    def _take_turn(self, group_ids: list[str]) -> list[str]:
        """The next of these ascending ids behind those of the last turn, and on from the first."""
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
