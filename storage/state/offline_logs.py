"""The partitions whose log is offline, and the pause before each of these logs is opened again.

A log goes offline after an error that leaves the content of its files unknown (`LogState.go_offline`). A log
that cannot be opened counts as offline, too. A partition stays here until its log is open again, or until
its topic is deleted. So the number is known without a look at all logs, which may be ten thousand.

After the pause, the next request opens the log again (`PartitionLogs`), and the broker then reloads the
leaders and coordinators over it. Only the metadata log stays online on a full disk
(`LogState.refusal_if_full`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from barnabas.protocol.errors import without_frames
from barnabas.storage.errors import StorageError
from barnabas.storage.topic_partition import TopicPartition


class OfflineLogs:
    """Those of one data directory. Used on the loop's thread only."""

    __slots__ = ("_partitions", "_pauses")

    def __init__(self) -> None:
        self._partitions: set[TopicPartition] = set()
        self._pauses: dict[TopicPartition, tuple[float, StorageError]] = {}
        """(end of the pause by the loop's time, error for requests until then)."""

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[TopicPartition]:
        """In no particular order."""
        return iter(self._partitions)

    def add(self, partition: TopicPartition) -> None:
        """Its log went offline. The pause begins with the next request (`check_pause`)."""
        self._partitions.add(partition)

    def add_failed(self, partition: TopicPartition, error: StorageError, pause_ms: int) -> None:
        """Its log could not be opened. Until the end of the pause requests get this error."""
        self._partitions.add(partition)
        self._pauses[partition] = asyncio.get_running_loop().time() + pause_ms / 1000, error

    def check_pause(self, partition: TopicPartition, offline: StorageError | None, pause_ms: int) -> None:
        """Whether a request may open the log: raises StorageError until the end of the pause.

        `offline` is the error that took the log offline, if it is still open. Then the first request begins
        the pause.
        """
        if offline is not None and partition not in self._pauses:
            self.add_failed(partition, offline, pause_ms)
        if partition in self._pauses:
            end, error = self._pauses[partition]
            if asyncio.get_running_loop().time() < end:
                raise without_frames(error)
            del self._pauses[partition]

    def remove(self, partition: TopicPartition) -> None:
        """Its log is open again; does nothing if it was not offline."""
        self._partitions.discard(partition)
        self._pauses.pop(partition, None)

    def remove_topic(self, topic: str) -> None:
        """The topic is deleted. Its partitions may have no directory, if none could be created."""
        for partition in [partition for partition in self._partitions if partition.topic == topic]:
            self.remove(partition)
