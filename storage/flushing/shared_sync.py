"""Syncing one directory for all who wait: those who come while a sync is under way share the next one."""

from __future__ import annotations

import asyncio

from barnabas.storage.filesystem import FileSystem


class SharedSync:
    """The syncs of the directory `path`. To be used on the loop's thread."""

    __slots__ = ("_filesystem", "_following", "_lock", "_path")

    def __init__(self, filesystem: FileSystem, path: str) -> None:
        self._filesystem = filesystem
        self._path = path
        self._lock = asyncio.Lock()
        """Held while a sync is under way."""
        self._following: asyncio.Task[None] | None = None
        """The sync that waits for the one under way, and takes in all that happens before it begins."""

    async def sync(self) -> None:
        """Returns once all changes of the directory's entries made before are durable; raises OSError."""
        if self._following is None:
            self._following = asyncio.get_running_loop().create_task(self._sync())
        await asyncio.shield(self._following)

    async def _sync(self) -> None:
        async with self._lock:
            self._following = None
            await self._filesystem.run(self._filesystem.sync_directory, self._path)
