"""The order in which Java's `HashMap` and `HashSet` iterate over their keys.

Apache Kafka's assignor breaks ties by the order of its hash maps, so two coordinators agree on every
partition only if both use that order. This module computes the order from the documented table layout: a
power of two of buckets, each a chain. It is not a map, and it leaves out tree bins (a chain of eight keys
that share a bucket in a table of 64 or more).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar
from uuid import UUID

_K = TypeVar("_K")

_UINT32 = 0xFFFFFFFF
_DEFAULT_CAPACITY = 16
_TIMELINE_FACTOR = -7046029254386353131


def string_hash(text: str) -> int:
    """Java's `String.hashCode`, as an unsigned 32-bit number: base 31 over the UTF-16 code units."""
    if text.isascii():
        units: Iterable[int] = text.encode("ascii")
    else:
        units = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    result = 0
    for unit in units:
        result = (31 * result + unit) & _UINT32
    return result


def uuid_hash(topic_id: UUID) -> int:
    """The hash of Kafka's `Uuid` (and Java's): both halves folded twice; unsigned 32 bits."""
    folded = (topic_id.int >> 64) ^ (topic_id.int & 0xFFFFFFFFFFFFFFFF)
    return (folded >> 32) ^ (folded & _UINT32)


def topic_partition_hash(topic_hash: int, partition: int) -> int:
    """The hash of the assignor's key (topic id, partition), given the topic id's hash; unsigned 32 bits."""
    return (31 * topic_hash + partition) & _UINT32


def default_capacity(key_count: int) -> int:
    """The table size of a map that was created empty and got `key_count` keys by put."""
    capacity = _DEFAULT_CAPACITY
    while key_count > capacity * 3 // 4:
        capacity *= 2
    return capacity


def presized_capacity(expected_count: int, key_count: int) -> int:
    """The table size of a map created for `expected_count` keys that got `key_count` by compute-if-absent.

    Compute-if-absent checks the load before it inserts, so such a table doubles one key later than with put.
    """
    capacity = 1 << (int((expected_count + 1) / 0.75 + 1) - 1).bit_length()
    while key_count - 1 > capacity * 3 // 4:
        capacity *= 2
    return capacity


def map_copy_capacity(copied_count: int, key_count: int) -> int:
    """The table size of a copy of another map that then has `key_count` keys by compute."""
    if not copied_count:
        return _DEFAULT_CAPACITY
    capacity = 1 << (int(copied_count / 0.75 + 1) - 1).bit_length()
    while key_count - 1 > capacity * 3 // 4:
        capacity *= 2
    return capacity


def copied_capacity(key_count: int) -> int:
    """The table size of a set created as a copy of `key_count` keys."""
    return 1 << (max(int(key_count / 0.75) + 1, _DEFAULT_CAPACITY) - 1).bit_length()


def bucket_of(key_hash: int, capacity: int) -> int:
    """The bucket of an unsigned 32-bit hash in a table of `capacity` (a power of two) buckets."""
    return (key_hash ^ (key_hash >> 16)) & (capacity - 1)


def walk_order(keys: Iterable[_K], hash_of: Callable[[_K], int], capacity: int) -> list[_K]:
    """The keys, given in the order of their insertion by put, in the order in which the map walks them."""
    return sorted(keys, key=lambda key: bucket_of(hash_of(key), capacity))


def timeline_order(keys: Iterable[str]) -> list[str]:
    """Strings in the order in which Kafka's own `TimelineHashMap` iterates over them, if it never had more.

    Its slots are the upper bits of a multiplicative hash, and it grows at three quarters of a key more than
    there are slots. Two keys of one slot come in the reverse of the given order.
    """
    names = list(keys)
    names.reverse()
    slot_bits = 1
    while len(names) * 3 > 4 << slot_bits:
        slot_bits += 1
    return sorted(names, key=lambda name: _timeline_slot(name, slot_bits))


def _timeline_slot(name: str, slot_bits: int) -> int:
    unsigned = string_hash(name)
    signed = unsigned - (1 << 32) if unsigned >> 31 else unsigned
    return (signed * _TIMELINE_FACTOR & (1 << 64) - 1) >> (64 - slot_bits)


def int_walk_order(keys: Sequence[int], capacity: int) -> list[int]:
    """`walk_order` of ints from 0, each its own hash. It is several times as fast if all are below 65536,
    because those have no upper half to mix in.
    """
    if max(keys, default=0) >> 16:
        return walk_order(keys, int, capacity)
    return sorted(keys, key=(capacity - 1).__and__)
