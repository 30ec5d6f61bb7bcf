"""Which partition of `__consumer_offsets` a group's records belong to."""

from barnabas.coordinator.assignor.java_hash_map import string_hash

GROUP_PARTITION_COUNT = 50
"""Kafka's default of `offsets.topic.num.partitions`."""


def partition_of_group(group_id: str) -> int:
    """The group's partition: as Kafka, the absolute of Java's string hash, modulo the partition count."""
    unsigned = string_hash(group_id)
    if unsigned == 1 << 31:
        # Java's least int has no absolute; Kafka takes 0.
        return 0
    return min(unsigned, (1 << 32) - unsigned) % GROUP_PARTITION_COUNT
