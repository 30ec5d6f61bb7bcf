"""The partition of a coordinator's topic that holds a key."""

from barnabas.coordinator.assignor.java_hash_map import string_hash


def partition_of_key(key: str, partition_count: int) -> int:
    """As in Kafka: the absolute value of Java's string hash, modulo the partition count."""
    return absolute_hash(key) % partition_count


def absolute_hash(key: str) -> int:
    """The absolute value of Java's string hash, from 0 to 2**31 - 1."""
    unsigned = string_hash(key)
    if unsigned == 1 << 31:
        # The least Java int has no absolute value; Kafka uses 0.
        return 0
    return min(unsigned, (1 << 32) - unsigned)
