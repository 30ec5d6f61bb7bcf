"""The partition of `__consumer_offsets` for a group, as every Kafka client and tool computes it."""

import pytest

from tests.coordinator.group.partition_count import partition_of_group


@pytest.mark.parametrize(
    ("group_id", "partition"),
    [
        ("", 0),
        ("hello", 99162322 % 50),
        ("Aa", 2112 % 50),
        ("share-group-1", 39),
        # Negative hashes: -1008770331 and -109829509.
        ("orders", 31),
        ("billing", 9),
        # Java's least int has no absolute value; Kafka takes 0.
        ("polygenelubricants", 0),
    ],
)
def test_partition_is_the_absolute_string_hash_modulo_fifty(group_id: str, partition: int) -> None:
    assert partition_of_group(group_id) == partition
