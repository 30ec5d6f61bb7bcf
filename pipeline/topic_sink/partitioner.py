"""Chooses the partition of a record: the same one as Java's producer for the same key (pure).

The murmur2 hash of a key chooses the partition, so a topic that both producers write to keeps the order of
each key. Records without a key go to one partition until its batch is full, then to the next, which makes
batches large (KIP-480). The caller names the first of them, so a task that runs again chooses the same.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final

KEYS_MAX: Final = 16_384
"""Keys whose hash is remembered: most streams have few keys, and each of them often."""
KEY_BYTES_MAX: Final = 256
"""A longer key is hashed each time, to keep the memory small."""

_SEED: Final = 0x9747B28C
_FACTOR: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The 32 bits of MurmurHash2 with Kafka's seed, unsigned."""
    length = len(data)
    value = _SEED ^ length
    whole = length & ~3
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        mixed = word * _FACTOR & _MASK
        mixed = (mixed ^ mixed >> 24) * _FACTOR & _MASK
        value = value * _FACTOR & _MASK ^ mixed
    if length > whole:
        value = (value ^ int.from_bytes(data[whole:], "little")) * _FACTOR & _MASK
    value = (value ^ value >> 13) * _FACTOR & _MASK
    return value ^ value >> 15


def partition_of_key(key: bytes, partition_count: int) -> int:
    """The partition of records with this key, which may be empty."""
    hashed = _remembered(key) if len(key) <= KEY_BYTES_MAX else murmur2(key)
    return (hashed & 0x7FFFFFFF) % partition_count


_remembered = lru_cache(KEYS_MAX)(murmur2)


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
