"""Partitions of one topic, as the records of share groups and of consumer groups name them."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.schema import Int32, Uuid


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPartitions:
    topic_id: Uuid
    partitions: tuple[Int32, ...]
