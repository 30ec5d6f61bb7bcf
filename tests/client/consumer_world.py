"""Consumers and producers that connect to the broker of a `World`, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from random import Random
from typing import Any

from barnabas.client import Consumer, ConsumerRecord, Producer, RebalanceListener, TopicPartition
from tests.client.virtual_world import ADDRESS, TOPIC, World

GROUP = "readers"

Records = list[ConsumerRecord[bytes | None, bytes | None]]
BytesConsumer = Consumer[bytes | None, bytes | None]


def consumer(world: World, *topics: str, **options: Any) -> BytesConsumer:
    """A consumer that reads from the start, and starts when it is entered."""
    given: dict[str, Any] = {
        "group": GROUP,
        "topics": topics if "pattern" in options else topics or (TOPIC,),
        "random": Random(2).random,
        "auto_offset_reset": "earliest",
        **options,
    }
    return Consumer(ADDRESS, **given)


def producer(world: World, **options: Any) -> Producer:
    """A producer with the world's time, which starts when it is entered."""
    given: dict[str, Any] = {"random": Random(3).random, "wall_ms": world.clock.wall_ms, **options}
    return Producer(ADDRESS, **given)


async def take(one: BytesConsumer, count: int, *, within_seconds: float = 120) -> Records:
    """Poll until `count` records have arrived."""
    records: Records = []
    async with asyncio.timeout(within_seconds):
        while len(records) < count:
            records += await one.poll(max_records=count - len(records))
    return records


async def all_that_come(one: BytesConsumer, *, seconds: float = 2) -> Records:
    """Poll until nothing has come for some time."""
    records: Records = []
    while polled := await one.poll(timeout=seconds):
        records += polled
    return records


def values(records: Sequence[ConsumerRecord[Any, bytes | None]]) -> list[str]:
    return [(record.value or b"").decode() for record in records]


def partitions(*indexes: int, topic: str = TOPIC) -> list[TopicPartition]:
    return [TopicPartition(topic, index) for index in indexes]


class Journal(RebalanceListener):
    """Writes down the calls; with `commits`, `on_revoked` commits."""

    def __init__(self, *, commits: bool = False) -> None:
        self.calls: list[tuple[str, list[int]]] = []
        self.consumer: BytesConsumer | None = None
        self._commits = commits

    async def on_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self._note("assigned", partitions)

    async def on_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._note("revoked", partitions)
        if self._commits:
            assert self.consumer is not None
            await self.consumer.commit()

    async def on_lost(self, partitions: Collection[TopicPartition]) -> None:
        self._note("lost", partitions)

    def _note(self, name: str, partitions: Collection[TopicPartition]) -> None:
        self.calls.append((name, sorted(one.partition for one in partitions)))
