"""Offsets that producers have committed in open transactions (KIP-98, KIP-447; pure).

They are in force once their transaction is committed, and are dropped if it is aborted. Until then a fetch of
stable offsets has to wait. A transaction ends with a marker in each partition of the log. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from uuid import UUID

from barnabas.coordinator.offsets.committed_offset import CommittedOffset, OffsetKey

_Ends = tuple[int, int]
"""A partition of the log and a producer id, whose transaction one marker ends."""

_NO_ENDS: Set[_Ends] = frozenset()


class PendingOffsets:
    """The pending offsets of all groups."""

    def __init__(self) -> None:
        self._by_transaction: dict[_Ends, dict[OffsetKey, CommittedOffset]] = {}
        self._transactions: dict[str, dict[OffsetKey, set[_Ends]]] = {}
        """By group id and key, the transactions that have an offset for it."""

    def add(self, log_partition: int, producer_id: int, key: OffsetKey, committed: CommittedOffset) -> None:
        """A producer's transaction commits an offset; the last one for a key counts."""
        ends = (log_partition, producer_id)
        self._by_transaction.setdefault(ends, {})[key] = committed
        self._transactions.setdefault(key.group_id, {}).setdefault(key, set()).add(ends)

    def end(self, log_partition: int, producer_id: int) -> Mapping[OffsetKey, CommittedOffset]:
        """The producer's transaction has ended: returns and removes its pending offsets of this partition."""
        ends = (log_partition, producer_id)
        ended = self._by_transaction.pop(ends, {})
        for key in ended:
            self._release(key, ends)
        return ended

    def remove(self, key: OffsetKey) -> None:
        """Forget the pending offsets of this key, because it was deleted."""
        for ends in list(self._of(key)):
            offsets = self._by_transaction[ends]
            del offsets[key]
            if not offsets:
                del self._by_transaction[ends]
            self._release(key, ends)

    def forget_partition(self, log_partition: int) -> None:
        """Forget the pending offsets of that partition of the log."""
        for ends in [ends for ends in self._by_transaction if ends[0] == log_partition]:
            self.end(*ends)

    def is_pending(self, key: OffsetKey) -> bool:
        """Whether an open transaction has an offset for this key."""
        return bool(self._of(key))

    def has_group(self, group_id: str) -> bool:
        """Whether the group has a pending offset."""
        return group_id in self._transactions

    def keys_of_group(self, group_id: str) -> Iterator[OffsetKey]:
        """The keys of one group's pending offsets."""
        yield from self._transactions.get(group_id, {})

    def topics(self) -> set[tuple[str, UUID]]:
        """The names and ids of the topics with pending offsets."""
        return {
            (key.topic_name, committed.topic_id)
            for offsets in self._by_transaction.values()
            for key, committed in offsets.items()
        }

    def keys_of_topics(self, log_partition: int, topics: Mapping[str, Set[UUID]]) -> list[OffsetKey]:
        """The keys of pending offsets in one partition of the log, for topics with exactly these names and
        ids.
        """
        return [
            key
            for ends, offsets in self._by_transaction.items()
            if ends[0] == log_partition
            for key, committed in offsets.items()
            if committed.topic_id in topics.get(key.topic_name, ())
        ]

    def _of(self, key: OffsetKey) -> Set[_Ends]:
        return self._transactions.get(key.group_id, {}).get(key, _NO_ENDS)

    def _release(self, key: OffsetKey, ends: _Ends) -> None:
        by_key = self._transactions[key.group_id]
        by_key[key].discard(ends)
        if not by_key[key]:
            del by_key[key]
        if not by_key:
            del self._transactions[key.group_id]
