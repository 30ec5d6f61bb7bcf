"""The background tasks of one client, and its start: the search for a broker that answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from typing import Any, Final

from barnabas.client.cluster import Cluster
from barnabas.client.common_options import ClientSettings
from barnabas.client.errors import BrokerUnavailableError

log = logging.getLogger(__name__)

_MS_PER_SECOND: Final = 1000


class Tasks:
    """Tasks that end with their client."""

    def __init__(self, on_failure: Callable[[BaseException], None]) -> None:
        """`on_failure` is called with the error of a task that failed."""
        self._on_failure = on_failure
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._note_done)
        return task

    async def cancel(self, tasks: Collection[asyncio.Task[None]] | None = None) -> None:
        """Cancel these tasks, or all, and wait for their ends."""
        ending = list(self._tasks if tasks is None else tasks)
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending)

    def _note_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_failure(error)


async def find_cluster(cluster: Cluster, settings: ClientSettings) -> None:
    """Return once a broker has answered.

    Raises `BrokerUnavailableError` after `connect_timeout_ms`, and `SecurityError` immediately.
    """
    loop, backoff = asyncio.get_running_loop(), settings.backoff()
    deadline = loop.time() + settings.connect_timeout_ms / _MS_PER_SECOND
    while True:
        try:
            await cluster.refresh(())
            return
        except BrokerUnavailableError as error:
            pause = backoff.next_ms() / _MS_PER_SECOND
            if loop.time() + pause >= deadline:
                raise
            log.info("No broker answers yet: %s", error)
        await asyncio.sleep(pause)
