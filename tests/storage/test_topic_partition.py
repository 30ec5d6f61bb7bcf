"""The names of partitions' directories."""

import pytest

from barnabas.storage.topic_partition import TopicPartition, parse_directory_name


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("orders-0", ("orders", 0)),
        ("my-orders.v1_x-12", ("my-orders.v1_x", 12)),
        ("__cluster_metadata-0", ("__cluster_metadata", 0)),
        ("orders", None),
        ("-0", None),
        ("orders-", None),
        ("orders-x", None),
        ("orders-٣", None),
        ("orders-0.0a1b-delete", None),
        ("orders-0.0a1b-stray", None),
        ("meta.properties", None),
    ],
)
def test_only_a_name_of_topic_and_partition_is_parsed(name: str, parsed: tuple[str, int] | None) -> None:
    assert parse_directory_name(name) == parsed
    if parsed is not None:
        assert TopicPartition(*parsed).directory_name == name
