"""The partition of a key, as Kafka 4.3.1 computes it."""

import pytest

from barnabas.coordinator.replay.key_partition import partition_of_key


@pytest.mark.parametrize(
    ("key", "partition"),
    [
        ("orders:AAECAwQFBgcICQoLDA0ODw:0", 27),
        ("orders:AAECAwQFBgcICQoLDA0ODw:17", 5),
        ("été:AAECAwQFBgcICQoLDA0ODw:1", 19),
        ("a:b:AAECAwQFBgcICQoLDA0ODw:0", 45),
    ],
)
def test_each_key_has_the_partition_of_kafka(key: str, partition: int) -> None:
    assert partition_of_key(key, 50) == partition


def test_the_least_int_of_java_has_no_absolute_and_counts_as_0() -> None:
    assert partition_of_key("polygenelubricants", 50) == 0
