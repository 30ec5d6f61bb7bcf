"""What can go wrong with the disk: operating faults, typed, each confined to one log or to the start.

None of these is the peer's fault. The edge answers a `StorageError` with its code, mostly
KAFKA_STORAGE_ERROR, upon which clients refresh their metadata and try again. Damage that recovery can repair
raises nothing.
"""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode


class StorageError(Exception):
    """Reading or writing a log failed; `code` is what a response says."""

    code = ErrorCode.kafka_storage_error


def raised_anew(error: StorageError) -> StorageError:
    """An error of the same type, message and cause, for whoever keeps one and raises it more than once.

    An exception keeps the frames that it went through, and more of them each time it is raised.
    """
    fresh = type(error)(*error.args)
    fresh.__cause__ = error.__cause__
    return fresh


class LogOffline(StorageError):  # noqa: N818  named as the condition
    """The log takes no more reads or writes until it is opened again, through recovery.

    A write or an fsync failed before (the cause), after which nobody knows what the file holds.
    """


class DiskFull(StorageError):  # noqa: N818  named as the condition
    """There was no room for an append, of which nothing is left, or for what a flush writes beside records.

    The log is as it was, and goes on.
    """


class AppendQueueFull(StorageError):  # noqa: N818  named as the condition
    """More bytes wait for a slow disk than `append_queue_bytes_max` allows."""


class LogClosed(StorageError):  # noqa: N818  named as the condition
    """The log was closed, or its topic deleted, while the append waited."""


class CorruptBatch(StorageError):  # noqa: N818  named as the condition
    """What is asked for lies in a batch that isn't what was written; the rest of the log serves.

    Answered with CORRUPT_MESSAGE, since trying again doesn't help: somebody has to look.
    """

    code = ErrorCode.corrupt_message


class ShareStateLost(StorageError):  # noqa: N818  named as the condition
    """Control records of a share group cannot be read, or are missing: nobody knows its state here.

    It stays so until the state is set anew, or deleted: no part of it stands for the whole.
    """


class DirectoryLocked(StorageError):  # noqa: N818  named as the condition
    """Another broker, the process `pid` if it could be told, uses the data directory."""

    def __init__(self, path: str, pid: int | None) -> None:
        directory = path.removesuffix("/.lock")
        super().__init__(
            f"{directory} is used by another broker, process {'unknown' if pid is None else pid}. Stop that "
            "one, or name another directory."
        )
        self.pid = pid


class InvalidDirectory(StorageError):  # noqa: N818  named as the condition
    """The data directory belongs to another node or cluster, or its meta.properties cannot be read."""


class InconsistentTopicId(StorageError):  # noqa: N818  named as the condition
    """The directory holds the log of another topic that had the same name."""
