"""Errors of reads: they fail only the read, and the log stays online, unless an index must be rebuilt."""

from __future__ import annotations

from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.errors import IndexDamaged, StorageError
from barnabas.storage.state.log_state import LogState


class Reads:
    """A context manager around reads: turns OSError and RecordFormatError into StorageError."""

    __slots__ = ("_log",)

    def __init__(self, log: LogState) -> None:
        self._log = log

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, OSError | RecordFormatError):
            raise self.error_of(error) from error

    def error_of(self, error: OSError | RecordFormatError) -> StorageError:
        """The error of a read that has failed with `error`."""
        if isinstance(error, IndexDamaged):
            return self._log.go_offline(error)
        return StorageError(f"{self._log.topic_partition.directory_name}: {error}")
