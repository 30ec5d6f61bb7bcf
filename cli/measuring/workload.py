"""Runs the phases of `barnabas bench` on topics and groups of its own, and removes them at the end."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple, TypeVar

from barnabas.cli.measuring.phases import (
    DELAY_RECORDS,
    Load,
    measure_delays,
    measure_produce,
    measure_share,
)
from barnabas.cli.measuring.summary import print_delays, print_throughput
from barnabas.cli.printing import Printer
from barnabas.cli.progress import progress
from barnabas.cli.target import Target
from barnabas.client.admin.connection import AdminConnection
from barnabas.client.admin.groups import delete_group
from barnabas.client.admin.settings import Resource, ResourceType, alter_settings
from barnabas.client.admin.topics import create_topic, delete_topic
from barnabas.client.errors import ConsumerError
from barnabas.protocol.counted import counted

_Figures = TypeVar("_Figures")


class Size(NamedTuple):
    """The size of a measurement."""

    record_count: int
    record_bytes: int
    partition_count: int
    consumer_count: int


async def bench(target: Target, printer: Printer, size: Size) -> None:
    """Measure and print. Raises `ConsumerError`."""
    printer.text(
        f"{counted(size.record_count, 'record')} of {size.record_bytes} random bytes, "
        f"{counted(size.partition_count, 'partition')}, {counted(size.consumer_count, 'share consumer')}; "
        "one process is the whole client"
    )
    async with target.administer() as admin:
        async with _own_topic(admin, size.partition_count) as (topic, group_id):
            load = Load(topic, group_id, size.record_count, size.record_bytes, size.consumer_count)
            print_throughput(
                printer, await _shown("produce", load.record_count, measure_produce, target, load)
            )
            print_throughput(printer, await _shown("share", load.record_count, measure_share, target, load))
        async with _own_topic(admin, 1) as (topic, group_id):
            load = load._replace(topic=topic, group_id=group_id)
            print_delays(printer, await _shown("delay", DELAY_RECORDS, measure_delays, target, load))


async def _shown(
    phase: str,
    total: int,
    measure: Callable[[Target, Load, Callable[[int], None]], Awaitable[_Figures]],
    target: Target,
    load: Load,
) -> _Figures:
    with progress(phase, total) as steps:
        return await measure(target, load, steps.advance)


@asynccontextmanager
async def _own_topic(admin: AdminConnection, partition_count: int) -> AsyncGenerator[tuple[str, str]]:
    """A new topic, and a share group that begins at its start. Both are deleted at the end."""
    name = f"barnabas-bench-{os.urandom(4).hex()}"
    await create_topic(admin, name, partition_count=partition_count)
    group = Resource(ResourceType.GROUP, name)
    try:
        await alter_settings(admin, group, {"share.auto.offset.reset": "earliest"})
        yield name, name
    finally:
        await _remove(admin, name, group)


async def _remove(admin: AdminConnection, name: str, group: Resource) -> None:
    """The group may not exist, if the measurement failed before it; the topic is deleted in any case."""
    try:
        await alter_settings(admin, group, {"share.auto.offset.reset": None})
        await delete_group(admin, name)
    except ConsumerError:
        pass
    finally:
        await delete_topic(admin, name)
