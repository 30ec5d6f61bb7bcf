"""A partition as users name it. Inside the client, partitions are known by topic id (`TopicIdPartition`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class TopicPartition(NamedTuple):
    topic: str
    partition: int


def indexes_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The partitions' indexes by topic, both ascending, each once."""
    by_topic: dict[str, list[int]] = {}
    for topic, index in sorted(set(partitions)):
        by_topic.setdefault(topic, []).append(index)
    return by_topic
