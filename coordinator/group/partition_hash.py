"""Which partition of `__consumer_offsets` a group's records belong to."""

from barnabas.coordinator.runtime.key_partition import partition_of_key

GROUP_PARTITION_COUNT = 50
"""Kafka's default of `offsets.topic.num.partitions`."""


def partition_of_group(group_id: str) -> int:
    """The group's partition."""
    return partition_of_key(group_id, GROUP_PARTITION_COUNT)
