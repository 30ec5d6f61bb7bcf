"""Which partition of its topic a coordinator's key belongs to."""

from barnabas.coordinator.assignor.java_hash_map import string_hash


def partition_of_key(key: str, partition_count: int) -> int:
    """As Kafka: the absolute of Java's string hash, modulo the partition count."""
    return absolute_hash(key) % partition_count


def absolute_hash(key: str) -> int:
    """The absolute of Java's string hash, of 0 to 2**31 - 1."""
    unsigned = string_hash(key)
    if unsigned == 1 << 31:
        # Java's least int has no absolute; Kafka takes 0.
        return 0
    return min(unsigned, (1 << 32) - unsigned)
