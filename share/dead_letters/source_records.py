"""The records of a source topic, for dead letters that copy them."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ApiError
from barnabas.protocol.records import Record
from barnabas.share.dead_letters.batch_records import batch_records
from barnabas.storage.errors import StorageError
from barnabas.storage.log.partition_log import PartitionLog

_READ_BYTES: Final = 1024 * 1024
_READ_RECORDS: Final = 1_000


class SourceRecords:
    """Reads records one after the other, ascending; one read serves many of them.

    `bytes_max` bounds the decompressed size of a batch. A record in a larger batch, or one that can no longer
    be read, has no copy: its letter has headers only, as in Apache Kafka. While the log is offline nothing is
    known of its records: then StorageError is raised, and the letter waits.
    """

    def __init__(self, log: PartitionLog, bytes_max: int) -> None:
        self._log = log
        self._bytes_max = bytes_max
        self._records: dict[int, Record] = {}
        self._read_until = 0

    def record_at(self, offset: int) -> Record | None:
        """The record at `offset`, if it is there and can be read. Raises StorageError."""
        if offset >= self._read_until:
            self._read(offset)
        return self._records.get(offset)

    def _read(self, offset: int) -> None:
        self._records.clear()
        self._read_until = offset + 1
        try:
            read = self._log.read_batches(offset, records_max=_READ_RECORDS, bytes_max=_READ_BYTES)
        except (ApiError, StorageError):
            if self._log.offline is not None:
                raise
            return
        for record in batch_records(read, decompressed_bytes_max=self._bytes_max):
            self._records[record.offset] = record
        if read.batches:
            self._read_until = max(self._read_until, read.batches[-1].last_offset + 1)
