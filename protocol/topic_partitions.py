"""Partitions of one topic in the records of share groups and consumer groups."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.schema import Int32, Uuid


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPartitions:
    topic_id: Uuid
    partitions: tuple[Int32, ...]
