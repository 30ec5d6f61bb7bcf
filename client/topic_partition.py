"""A partition as users name it. Inside the client, partitions are known by topic id (`TopicIdPartition`)."""

from __future__ import annotations

from typing import NamedTuple


class TopicPartition(NamedTuple):
    topic: str
    partition: int
