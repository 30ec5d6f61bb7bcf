"""The partitions of `__consumer_offsets` in tests: the default number."""

from barnabas.coordinator.replay.key_partition import partition_of_key

GROUP_PARTITION_COUNT = 50


def partition_of_group(group_id: str) -> int:
    """The partition in which the group's records are."""
    return partition_of_key(group_id, GROUP_PARTITION_COUNT)
