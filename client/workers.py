"""Several records handled at once, each on its own: what `ShareConsumer.run` does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, Awaitable, Callable

from barnabas.client.errors import MisuseError
from barnabas.client.record import KeyT, ShareRecord, ValueT

log = logging.getLogger(__name__)

CONCURRENCY_MAX = 10_000
"""Tasks at most: each holds a record, and the broker locks so many of a partition only."""


async def work(
    records: AsyncIterable[ShareRecord[KeyT, ValueT]],
    handler: Callable[[ShareRecord[KeyT, ValueT]], Awaitable[object]],
    concurrency: int,
) -> None:
    """Hand every record to the handler, `concurrency` at once, until there are no more.

    Whatever else than an exception of the handler's ends one worker ends them all, and is raised.
    """
    if not 1 <= concurrency <= CONCURRENCY_MAX:
        raise MisuseError(f"The concurrency must be from 1 to {CONCURRENCY_MAX}.")
    workers = [asyncio.create_task(_work(records, handler)) for _ in range(concurrency)]
    try:
        ended, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.wait(workers)
    for worker in ended:
        worker.result()


async def _work(
    records: AsyncIterable[ShareRecord[KeyT, ValueT]],
    handler: Callable[[ShareRecord[KeyT, ValueT]], Awaitable[object]],
) -> None:
    async for record in records:
        try:
            async with record:
                await handler(record)
        except Exception:
            log.exception("The handler failed on %r", record)
