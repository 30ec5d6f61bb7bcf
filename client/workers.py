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

    Whatever else than the handler's failure ends one worker ends them all, and is raised.
    """
    if not 1 <= concurrency <= CONCURRENCY_MAX:
        raise MisuseError(f"The concurrency must be from 1 to {CONCURRENCY_MAX}.")
    workers = [asyncio.create_task(_work(records, handler)) for _ in range(concurrency)]
    try:
        for ended in asyncio.as_completed(workers):
            await ended
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


async def _work(
    records: AsyncIterable[ShareRecord[KeyT, ValueT]],
    handler: Callable[[ShareRecord[KeyT, ValueT]], Awaitable[object]],
) -> None:
    async for record in records:
        try:
            async with record:
                await handler(record)
        except (Exception, asyncio.CancelledError) as error:
            # Where nobody has cancelled this task, what the handler waited for was cancelled.
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise
            log.exception("The handler failed on %r", record)


def _is_cancelled() -> bool:
    """Whether somebody wants this task to end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
