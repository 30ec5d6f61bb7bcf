"""What becomes of errors in reading a log: they are errors of that read, and the log stays as it is."""

from __future__ import annotations

from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.errors import StorageError
from barnabas.storage.state.log_state import LogState


class Reads:
    """Around what reads: a page that cannot be read is a StorageError.

    RecordFormatError too, from those who don't know better what it means.
    """

    __slots__ = ("_log",)

    def __init__(self, log: LogState) -> None:
        self._log = log

    def __enter__(self) -> None:
        """There is nothing to begin."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, OSError | RecordFormatError):
            raise StorageError(f"{self._log.topic_partition.directory_name}: {error}") from error
