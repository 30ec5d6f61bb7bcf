"""Shared listings of the data directory: callers that arrive during a listing share the next one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.runtime.shared_work import SharedWork
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.topic_partition import TopicPartition, parse_directory_name

_Listing = Mapping[str, Sequence[TopicPartition]]
"""The partitions that have a directory, by topic."""


class SharedListing:
    """The listings of the directory `path`. Used on the loop's thread only."""

    __slots__ = ("_listings",)

    def __init__(self, filesystem: FileSystem, path: str) -> None:
        self._listings = SharedWork(lambda: filesystem.run(_list_by_topic, filesystem, path))

    async def partitions_of(self, topic: str) -> Sequence[TopicPartition]:
        """The topic's partitions that have a directory; raises OSError."""
        return (await self._listings.run()).get(topic, ())


def _list_by_topic(filesystem: FileSystem, path: str) -> _Listing:
    by_topic: dict[str, list[TopicPartition]] = {}
    for name in filesystem.list_directory(path):
        key = parse_directory_name(name)
        if key is not None:
            by_topic.setdefault(key.topic, []).append(key)
    return by_topic
