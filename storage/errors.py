"""Errors of the disk: typed operating faults. Each concerns one log, or the start of the broker.

None of them is the peer's fault. A response carries the code of a `StorageError`, mostly KAFKA_STORAGE_ERROR,
after which clients refresh their metadata and try again. Damage that recovery can repair raises nothing.
"""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode, ExpectedError


class StorageError(ExpectedError):
    """Reading or writing a log failed; `code` is the error code for a response."""

    code = ErrorCode.kafka_storage_error


class LogOffline(StorageError):  # noqa: N818  named as the condition
    """The log accepts no reads or writes until recovery opens it again.

    A write or an fsync failed before (the cause). Since then the content of the file is unknown.
    """


class DiskFull(StorageError):  # noqa: N818  named as the condition
    """The disk had no room for an append, or for the files that a flush writes beside the records.

    Nothing of the append is left in the log, which continues to serve.
    """


class AppendQueueFull(StorageError):  # noqa: N818  named as the condition
    """More bytes wait for a slow disk than `append_queue_bytes_max` allows."""


class LogClosed(StorageError):  # noqa: N818  named as the condition
    """The log was closed, or its topic deleted, while the append waited."""


class CorruptBatch(StorageError):  # noqa: N818  named as the condition
    """The requested offset lies in a batch whose bytes were changed; the rest of the log is served.

    Answered with CORRUPT_MESSAGE: a retry does not help, an administrator must act.
    """

    code = ErrorCode.corrupt_message


class IndexDamaged(OSError):  # noqa: N818  named as the condition
    """An index file does not match its checksum, is missing, or contradicts the log.

    The log must be opened again: recovery rebuilds the index.
    """


class ShareStateLost(StorageError):  # noqa: N818  named as the condition
    """Control records of a share group cannot be read or are missing, so its state in this log is unknown.

    The error remains until the state is reset or deleted, because a part of the records is not the state.
    """


class DirectoryLocked(StorageError):  # noqa: N818  named as the condition
    """A running broker uses the data directory: the process `pid`, None if that is unknown."""

    def __init__(self, path: str, pid: int | None) -> None:
        directory = path.removesuffix("/.lock")
        super().__init__(
            f"{directory} is used by a running broker, process {'unknown' if pid is None else pid}. Stop it "
            "first, or name another directory."
        )
        self.pid = pid


class InvalidDirectory(StorageError):  # noqa: N818  named as the condition
    """The data directory belongs to another node or cluster, or its meta.properties cannot be read."""


class InconsistentTopicId(StorageError):  # noqa: N818  named as the condition
    """The directory holds the log of another topic that had the same name."""
