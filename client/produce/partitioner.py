"""Chooses the partition of a record: the same one as Java's producer for the same key. Pure.

The murmur2 hash of a key chooses the partition, so a topic that both producers write to keeps the order of
each key. Records without a key go to one partition until its batch is full, then to the next, which makes
batches large (KIP-480). The caller names the first of them, so a task that runs again chooses the same.
"""

from __future__ import annotations

from barnabas.protocol.record_keys import key_hash


def partition_of_key(key: bytes, partition_count: int) -> int:
    """The partition of records with this key, which may be empty."""
    return key_hash(key) % partition_count


class KeylessTurns:
    """The turn among a topic's partitions, for records without a key."""

    def __init__(self, first: int) -> None:
        self._turns: dict[str, int] = {}
        self._first = first

    def current(self, topic: str, partition_count: int) -> int:
        """The partition that a record without a key goes to now."""
        return self._turns.get(topic, self._first) % partition_count

    def next(self, topic: str) -> None:
        """The batch is full: the next partition takes over."""
        self._turns[topic] = self._turns.get(topic, self._first) + 1
