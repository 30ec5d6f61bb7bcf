"""Handles several records at once, each on its own: the implementation of `ShareConsumer.run`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, Awaitable, Callable

from barnabas.client.errors import MisuseError
from barnabas.client.record_content import KeyT, ValueT
from barnabas.client.share.record import ShareRecord
from barnabas.client.share.stopping import StopDeadline

log = logging.getLogger(__name__)

CONCURRENCY_MAX = 10_000
"""The most tasks: each holds a record, and the broker limits the locks of a partition."""


async def work(
    records: AsyncIterable[ShareRecord[KeyT, ValueT]],
    handler: Callable[[ShareRecord[KeyT, ValueT]], Awaitable[object]],
    concurrency: int,
    deadline: StopDeadline,
) -> None:
    """Pass every record to the handler, `concurrency` at once, until there are no more.

    A handler's failure affects only its record, and is logged: in one line if the exception rejects the
    record, else with its traceback. Any other error in one worker ends all workers, and is
    raised. Handlers that still run at the deadline are cancelled.
    """
    if not 1 <= concurrency <= CONCURRENCY_MAX:
        raise MisuseError(f"The concurrency must be from 1 to {CONCURRENCY_MAX}.")
    workers = [asyncio.create_task(_work(records, handler)) for _ in range(concurrency)]
    try:
        async with deadline.limit():
            for ended in asyncio.as_completed(workers):
                await ended
        if late := [worker for worker in workers if not worker.done()]:
            log.warning("%d handlers did not finish in time after the stop, and are cancelled", len(late))
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
            # If this task was not cancelled, the handler awaited something that was.
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise
            if record.holder.rejects(error):
                # Some exceptions, such as pydantic's, have several lines.
                reason = " ".join(repr(error).split())
                log.warning("The handler raised an exception of reject_on at %r: %s", record, reason)
            else:
                log.exception("The handler failed on %r", record)


def _is_cancelled() -> bool:
    """Whether cancellation of this task was requested."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
