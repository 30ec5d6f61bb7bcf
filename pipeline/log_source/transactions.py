"""The aborted transactions of a partition, and the first offsets of its open ones (KIP-98).

The `.txnindex` files of the segments list the transactions that were aborted before the last flush. A
partition without these files may have lost them, or had no aborted transactions: then all headers are read
from the start, for markers. No index has the transactions that are open at the end of the log, or that were
aborted since the last flush: a producer snapshot has those below its offset, and the headers behind it have
the others.

A broker may write meanwhile. It flushes a segment's index before the snapshot behind it, so this reads the
snapshot first: an index then has each transaction that ended below the snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from barnabas.pipeline.log_source.directories import PartitionFolder
from barnabas.pipeline.log_source.errors import CorruptLog, LogFileError
from barnabas.pipeline.log_source.segment_file import OFFSET_DIGITS, OpenSegment
from barnabas.pipeline.log_source.segment_slice import OFFSET_MAX
from barnabas.pipeline.log_source.transaction_index import AbortedTransaction, decode_transaction_index
from barnabas.protocol.control_record import ControlType, read_control_type
from barnabas.protocol.record_batch import BatchHeader
from barnabas.protocol.records import iterate_records
from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.format.producer_snapshot import SnapshotCorrupt, decode_snapshot

TRANSACTION_INDEX_SUFFIX: Final = ".txnindex"
_SNAPSHOT_SUFFIX = ".snapshot"


@dataclass(frozen=True, slots=True)
class Transactions:
    """The transactions of a partition, for a committed reader.

    `last_stable_offset` is the first offset of the oldest open transaction; without one there is no bound.
    """

    aborted: tuple[AbortedTransaction, ...]
    last_stable_offset: int

    def aborted_between(self, first_offset: int, end_offset: int) -> tuple[AbortedTransaction, ...]:
        """The aborted transactions that can have records at offsets in [first_offset, end_offset)."""
        return tuple(
            transaction
            for transaction in self.aborted
            if transaction.first_offset < end_offset and transaction.last_offset >= first_offset
        )


def read_transactions(folder: PartitionFolder) -> Transactions:
    """Reads the files, and the headers that they don't cover. Raises `LogFileError`."""
    walk = _Walk()
    from_offset = _resume(walk, folder)
    index_paths = sorted(Path(folder.path).glob(f"*{TRANSACTION_INDEX_SUFFIX}"))
    if not index_paths:
        walk, from_offset = _Walk(), folder.log_start_offset
    walk.take_in(folder, from_offset)
    indexed = [transaction for path in index_paths for transaction in _read_index(path)]
    known = {transaction.last_offset for transaction in indexed}
    behind = [transaction for transaction in walk.aborted if transaction.last_offset not in known]
    return Transactions((*indexed, *behind), walk.last_stable_offset)


def _read_index(path: Path) -> list[AbortedTransaction]:
    try:
        return list(decode_transaction_index(path.read_bytes()))
    except FileNotFoundError:
        return []
    except ValueError as error:
        raise LogFileError(str(path), str(error)) from error


def _resume(walk: _Walk, folder: PartitionFolder) -> int:
    """Begins the walk with the newest readable producer snapshot; returns the offset to walk from."""
    for path in sorted(Path(folder.path).glob(f"*{_SNAPSHOT_SUFFIX}"), reverse=True):
        if len(path.stem) != OFFSET_DIGITS or not path.stem.isdigit():
            continue
        try:
            entries = decode_snapshot(path.read_bytes())
        except (FileNotFoundError, SnapshotCorrupt):
            continue
        walk.open = {
            producer.producer_id: producer.transaction_first_offset
            for producer in entries
            if producer.transaction_first_offset >= 0
        }
        return max(int(path.stem), folder.log_start_offset)
    return folder.log_start_offset


@dataclass(slots=True)
class _Walk:
    """A walk over headers, which collects the beginnings and ends of transactions."""

    open: dict[int, int] = field(default_factory=dict[int, int])
    """By producer id, the first offset of its open transaction."""
    aborted: list[AbortedTransaction] = field(default_factory=list[AbortedTransaction])

    @property
    def last_stable_offset(self) -> int:
        return min(self.open.values(), default=OFFSET_MAX)

    def take_in(self, folder: PartitionFolder, from_offset: int) -> None:
        """Walks the batches from an offset on."""
        for number, segment in enumerate(folder.segments):
            end = folder.end_of(number)
            if end is not None and end <= from_offset:
                continue
            with OpenSegment(segment.path) as file:
                for position, header in file.headers(0, segment.size_bytes):
                    if header.is_transactional and header.last_offset >= from_offset:
                        self._take_batch(file, position, header)

    def _take_batch(self, file: OpenSegment, position: int, header: BatchHeader) -> None:
        if not header.is_control:
            self.open.setdefault(header.producer_id, header.base_offset)
            return
        first_offset = self.open.pop(header.producer_id, None)
        if first_offset is not None and _is_abort(file, position, header):
            self.aborted.append(AbortedTransaction(header.producer_id, first_offset, header.last_offset))


def _is_abort(file: OpenSegment, position: int, header: BatchHeader) -> bool:
    data = file.read(position, header.size_bytes)
    try:
        return any(read_control_type(record.key) == ControlType.ABORT for record in iterate_records(data))
    except RecordFormatError as error:
        raise CorruptLog(file.path, f"the transaction marker at {position}: {error}") from error
