"""Shared listings of the data directory: callers that arrive during a listing share the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from barnabas.storage.filesystem import FileSystem
from barnabas.storage.topic_partition import TopicPartition, parse_directory_name

_Listing = Mapping[str, Sequence[TopicPartition]]
"""The partitions that have a directory, by topic."""


class SharedListing:
    """The listings of the directory `path`. Used on the loop's thread only."""

    __slots__ = ("_filesystem", "_following", "_lock", "_path")

    def __init__(self, filesystem: FileSystem, path: str) -> None:
        self._filesystem = filesystem
        self._path = path
        self._lock = asyncio.Lock()
        """Held while the directory is listed."""
        self._following: asyncio.Task[_Listing] | None = None
        """The listing that waits for the one under way, and finds all present directories."""

    async def partitions_of(self, topic: str) -> Sequence[TopicPartition]:
        """The topic's partitions that have a directory; raises OSError."""
        if self._following is None:
            self._following = asyncio.get_running_loop().create_task(self._list())
        listing = await asyncio.shield(self._following)
        return listing.get(topic, ())

    async def _list(self) -> _Listing:
        async with self._lock:
            self._following = None
            return await self._filesystem.run(_list_by_topic, self._filesystem, self._path)


def _list_by_topic(filesystem: FileSystem, path: str) -> _Listing:
    by_topic: dict[str, list[TopicPartition]] = {}
    for name in filesystem.list_directory(path):
        key = parse_directory_name(name)
        if key is not None:
            by_topic.setdefault(key.topic, []).append(key)
    return by_topic
