"""A topic that a share group begins to read, and a consumer that holds records of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from tests.client.virtual_world import TOPIC, Consumer, Records, World


async def topic_of(world: World, *values: str) -> None:
    """A topic with a batch for each value, and a group that begins with the first one."""
    await world.topic(TOPIC)
    for value in values:
        await world.write(TOPIC, value)
    await world.group()


@asynccontextmanager
async def holding(world: World, count: int) -> AsyncGenerator[tuple[Consumer, Records]]:
    """A consumer that holds the first records, and no others."""
    options: dict[str, Any] = {"max_records": count, "prefetch_records": 0, "renew_locks": False}
    async with world.consumer(acquire_mode="record_limit", client_id="app", **options) as consumer:
        records = aiter(consumer)
        yield consumer, [await anext(records) for _ in range(count)]
