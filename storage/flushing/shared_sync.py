"""Shared syncs of one directory: callers that arrive during a sync share the next one."""

from __future__ import annotations

import asyncio

from barnabas.storage.filesystem import FileSystem


class SharedSync:
    """The syncs of the directory `path`. Used on the loop's thread only."""

    __slots__ = ("_filesystem", "_following", "_lock", "_path")

    def __init__(self, filesystem: FileSystem, path: str) -> None:
        self._filesystem = filesystem
        self._path = path
        self._lock = asyncio.Lock()
        """Held while a sync is under way."""
        self._following: asyncio.Task[None] | None = None
        """The sync that waits for the one under way; it includes all changes before its start."""

    async def sync(self) -> None:
        """Returns once all changes of the directory's entries made before are durable; raises OSError."""
        if self._following is None:
            self._following = asyncio.get_running_loop().create_task(self._sync())
        await asyncio.shield(self._following)

    async def _sync(self) -> None:
        async with self._lock:
            self._following = None
            await self._filesystem.run(self._filesystem.sync_directory, self._path)
