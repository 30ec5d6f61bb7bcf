"""Opens the logs that no client has used since the start, one by one: retention checks only open logs.

It is not part of a start, so that the time of a start does not depend on the number of logs.
"""

from __future__ import annotations

import asyncio
from typing import Final

from barnabas.coordinator.metadata.image import MetadataImage
from barnabas.coordinator.metadata.partition_logs import PartitionLogs
from barnabas.storage.directory.log_directory import LogDirectory

OPENED_MAX: Final = 1_000
"""The most logs that are opened; other logs are cleaned only after their first client opens them."""

_PAUSE_SECONDS: Final = 0.05


class IdleLogs:
    """The task that opens them."""

    def __init__(self, directory: LogDirectory, image: MetadataImage, logs: PartitionLogs) -> None:
        self._directory = directory
        self._image = image
        self._logs = logs
        self._task: asyncio.Task[None] | None = None

    def begin_to_open(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._open())

    async def close(self) -> None:
        """Open no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _open(self) -> None:
        on_disk = await self._directory.partitions_on_disk()
        for name, index in on_disk[:OPENED_MAX]:
            topic = self._image.topics_by_name.get(name)
            opening = None if topic is None else self._logs.open_all([(topic, index)])
            if opening is not None:
                await opening
                await asyncio.sleep(_PAUSE_SECONDS)
