"""Consumers that commit individually and share partitions, in a `World`, and the ranges of their group."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from barnabas.protocol.committed_ranges import CommittedRanges
from barnabas.protocol.extended.packed import unpack_ranges
from barnabas.protocol.record_batch import Compression
from barnabas.protocol.records import Record, encode_records
from tests.client.consumer_world import GROUP, BytesConsumer, Records, consumer
from tests.client.virtual_world import TOPIC, World

SETTLING_SECONDS = 30
"""More than the heartbeats of any rebalance."""


def sharer(world: World, **options: Any) -> BytesConsumer:
    """A consumer with individual commits, which starts when it is entered."""
    return consumer(world, allow_individual_commit=True, **options)


async def write_keyed(
    world: World, keys: Sequence[bytes | None], *, partition: int = 0, batch_records: int = 5
) -> None:
    """Append a record for each key, in batches; the values are the keys, too."""
    now_ms = world.clock.wall_ms()
    for start in range(0, len(keys), batch_records):
        records = [
            Record(number, now_ms, key, key) for number, key in enumerate(keys[start : start + batch_records])
        ]
        batch = encode_records(records, compression=Compression.NONE)
        await world.append(TOPIC, batch, partition=partition)


async def group_ranges(world: World, partition: int = 0, group: str = GROUP) -> CommittedRanges | None:
    """The offsets that the group has committed; None if there are none."""
    asked = {
        "group_id": group,
        "topics": [{"topic_id": world.topic_ids[TOPIC], "partition_indexes": [partition]}],
        "wants_ranges": True,
    }
    response = await world.admin.ask("offset_fetch", version=10, groups=[asked], require_stable=False)
    (found,) = response.groups[0].topics[0].partitions
    if found.committed_offset < 0:
        return None
    return CommittedRanges(found.committed_offset - 1, unpack_ranges(found.ranges or b""))


async def stable_and_ranges(world: World, partition: int = 0) -> tuple[int, list[tuple[int, int]]]:
    """The stable offset and the ranges beyond it."""
    found = await group_ranges(world, partition)
    assert found is not None, "the group has committed nothing"
    return found.stable_offset, [(first, last) for first, last in found]


async def until_shared(consumers: Sequence[BytesConsumer]) -> list[Records]:
    """Poll until each has a partition, or a share of one. Returns the records of each."""
    taken: list[Records] = [[] for _ in consumers]
    async with asyncio.timeout(600):
        while not all(one.assignment() for one in consumers):
            await poll_each(consumers, taken)
    return taken


async def drain(consumers: Sequence[BytesConsumer], *, seconds: float = 5) -> list[Records]:
    """Poll all of them in turns until nothing has come for some time. Returns the records of each."""
    taken: list[Records] = [[] for _ in consumers]
    loop = asyncio.get_running_loop()
    idle_since = loop.time()
    while loop.time() < idle_since + seconds:
        if await poll_each(consumers, taken):
            idle_since = loop.time()
    return taken


async def poll_each(consumers: Sequence[BytesConsumer], taken: list[Records]) -> bool:
    """Poll each once, and add its records to those that were taken. Returns whether there are some."""
    has_any = False
    for one, so_far in zip(consumers, taken, strict=True):
        polled = await one.poll(timeout=0.2)
        so_far.extend(polled)
        has_any |= bool(polled)
    return has_any
