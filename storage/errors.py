"""What can go wrong with the disk: operating faults, typed, each confined to one log or to the start.

None of these is the peer's fault. The edge answers every `StorageError` with KAFKA_STORAGE_ERROR, upon which
clients refresh their metadata and try again. Damage that recovery can repair raises nothing.
"""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode


class StorageError(Exception):
    """Reading or writing a log failed; `code` is what a response says."""

    code = ErrorCode.kafka_storage_error


class LogOffline(StorageError):  # noqa: N818  named as the condition
    """The log takes no more reads or writes until it is opened again, through recovery.

    A write or an fsync failed before (the cause), after which nobody knows what the file holds.
    """


class AppendQueueFull(StorageError):  # noqa: N818  named as the condition
    """More bytes wait for a slow disk than `append_queue_bytes_max` allows."""


class LogClosed(StorageError):  # noqa: N818  named as the condition
    """The log was closed, or its topic deleted, while the append waited."""


class DirectoryLocked(StorageError):  # noqa: N818  named as the condition
    """Another broker, the process `pid` if it could be told, uses the data directory."""

    def __init__(self, path: str, pid: int | None) -> None:
        super().__init__(f"{path} is used by another broker, process {'unknown' if pid is None else pid}.")
        self.pid = pid


class InvalidDirectory(StorageError):  # noqa: N818  named as the condition
    """The data directory belongs to another node or cluster, or its meta.properties cannot be read."""


class InconsistentTopicId(StorageError):  # noqa: N818  named as the condition
    """The directory holds the log of another topic that had the same name."""
