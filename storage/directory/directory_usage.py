"""The sizes of the logs of a data directory on the disk, open or not.

Only the segments' record files count, as in Kafka's DescribeLogDirs; indexes and deleted files do not.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.segments.segment import LOG_SUFFIX
from barnabas.storage.topic_partition import TopicPartition


async def partition_sizes(
    directory: LogDirectory, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """The size in bytes of each partition's log; partitions without a log are left out. Raises OSError."""
    sizes: dict[TopicPartition, int] = {}
    closed: list[TopicPartition] = []
    for key in partitions:
        log = directory.find(key.topic, key.partition)
        if log is None:
            closed.append(key)
        else:
            sizes[key] = log.size_bytes
    if closed:
        measured = directory.filesystem.run(_measure, directory.filesystem, directory.path, closed)
        sizes.update(await measured)
    return sizes


def _measure(
    filesystem: FileSystem, path: str, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    names = frozenset(filesystem.list_directory(path))
    return {
        key: _segments_bytes(filesystem, f"{path}/{key.directory_name}")
        for key in partitions
        if key.directory_name in names
    }


def _segments_bytes(filesystem: FileSystem, path: str) -> int:
    """A file that is deleted meanwhile counts as deleted."""
    total = 0
    try:
        for name in filesystem.list_directory(path):
            if name.endswith(LOG_SUFFIX):
                total += filesystem.file_size(f"{path}/{name}")
    except FileNotFoundError:
        pass
    return total
