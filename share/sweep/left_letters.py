"""The share-partitions in which records may wait for dead letters although the settings of their group name
no topic for them.

Such a group gives its letters up (docs/decisions/0024). The leader that has begun them does so at once, when
the setting is removed. But the broker may end before that is recorded, or the leader may be lost with its
log. No setting tells of these groups then. So after a start every share group counts as one of them, and
later each group whose topic was removed, until a leader of each of its share-partitions has settled the
records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from barnabas.protocol.identity import SharePartitionKey
from barnabas.share.sweep.shared_partitions import SharedPartitions, share_partitions_of


class LeftLetters:
    """All of them in one broker."""

    def __init__(self, groups: SharedPartitions) -> None:
        """At first, these are the share-partitions of all groups."""
        self._groups = groups
        self._knows_groups = False
        """Whether the groups that were there at the start have been added."""
        self._settled: dict[str, set[SharePartitionKey]] = {}
        """By group, the share-partitions that are settled; the group is dropped when all are."""
        self._queues: dict[str, deque[SharePartitionKey]] = {}
        """By group, those that were not looked at since all were the last time: one that cannot be led is
        looked at again behind the others.
        """

    @property
    def is_empty(self) -> bool:
        """Whether no share-partition is left to look at."""
        return self._knows_groups and not self._settled

    def add(self, group_ids: Iterable[str]) -> None:
        """These groups no longer name a topic: all of their share-partitions are to be looked at."""
        for group_id in group_ids:
            self._settled[group_id] = set()

    def settle(self, key: SharePartitionKey) -> None:
        """No record of the share-partition waits for a letter, or will."""
        settled = self._settled.get(key.group_id)
        if settled is not None:
            settled.add(key)

    def next_keys(self, count_max: int) -> list[SharePartitionKey]:
        """Some share-partitions to look at; other groups have their turn at the next call. None while the
        groups are not all known.
        """
        if not self._groups.all_loaded:
            return []
        if not self._knows_groups:
            self._knows_groups = True
            self.add(group.group_id for group in self._groups.list_groups())
        keys: list[SharePartitionKey] = []
        for group_id in list(self._settled):
            if len(keys) == count_max:
                break
            settled = self._settled.pop(group_id)
            queue = self._queues.pop(group_id, None) or deque(
                key for key in share_partitions_of(self._groups, group_id) if key not in settled
            )
            if queue:
                taken = [queue.popleft() for _ in range(min(len(queue), count_max - len(keys)))]
                keys += (key for key in taken if key not in settled)
                self._settled[group_id], self._queues[group_id] = settled, queue
        return keys
