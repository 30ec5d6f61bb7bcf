"""Polls of Barnabas's own consumers, of both kinds, as tests need them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from barnabas.client import ConsumerRecord, ShareRecord
from barnabas.client.group.group_consumer import GroupConsumer

RecordT = TypeVar("RecordT")
ValuedT = TypeVar("ValuedT", bound=ConsumerRecord[Any, bytes | None] | ShareRecord[Any, bytes | None])


async def take(consumer: GroupConsumer[RecordT, Any], count: int) -> list[RecordT]:
    """Reads this number of records, with any number of polls."""
    records: list[RecordT] = []
    while len(records) < count:
        records += await consumer.poll(max_records=count - len(records))
    return records


def values(records: Iterable[ValuedT]) -> list[str]:
    return [(record.value or b"").decode() for record in records]


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    while not await holds():  # noqa: ASYNC110  the awaited change happens in another process
        await asyncio.sleep(0.02)
