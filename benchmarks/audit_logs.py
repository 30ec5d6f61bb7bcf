"""Logs with millions of deliveries, for measuring audits.

The project's own format code writes them, with a process for each partition. A partition holds batches of
data. Each is followed by the deltas of one share group that acknowledge its records, with a checkpoint after
`DELTAS_PER_CHECKPOINT` deltas, as a broker writes it. One record in fifty is released first.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import BinaryIO, Final

from barnabas.protocol.control_record import (
    ShareCheckpoint,
    ShareDelta,
    build_control_batch,
    encode_checkpoint,
    encode_delta,
)
from barnabas.protocol.delivery_state import Cause, RecordState, StateRange
from barnabas.protocol.record_batch import build_batch
from barnabas.storage.format.offset_index import OffsetIndex

GROUP: Final = "of the audit"
DATA_BATCH_RECORDS: Final = 500
DELTAS_PER_CHECKPOINT: Final = 500
MEMBERS: Final = [f"member-{number:016}" for number in range(8)]
RELEASED_EVERY: Final = 50

_SEGMENT_BYTES: Final = 512 * 1024 * 1024
_INDEX_EVERY_BYTES: Final = 4096
_BEGAN_AT_MS: Final = 1_760_000_000_000
_VALUE: Final = bytes(16)


@dataclass(frozen=True)
class Shape:
    """The number of deliveries in total, and the number of records in a range."""

    delivery_count: int
    range_records: int
    partition_count: int = 2


def write_logs(directory: Path, topic: str, shape: Shape) -> int:
    """Writes the partitions of a data directory. Returns their size in bytes."""
    directory.mkdir(parents=True)
    (directory / "meta.properties").touch()
    each = shape.delivery_count // shape.partition_count
    folders = [directory / f"{topic}-{number}" for number in range(shape.partition_count)]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        sizes = pool.map(
            _write_partition, folders, [each] * len(folders), [shape.range_records] * len(folders)
        )
        return sum(sizes)


def _write_partition(folder: Path, delivery_count: int, range_records: int) -> int:
    folder.mkdir()
    log = _Log(folder)
    group = _Group(log)
    delivered_count = 0
    while delivered_count < delivery_count:
        first = log.append_data()
        for at in range(first, first + DATA_BATCH_RECORDS, range_records):
            delivered_count += group.deliver(at, at + range_records - 1)
    return log.close()


class _Log:
    """One partition's segments with their offset indexes."""

    def __init__(self, folder: Path) -> None:
        self.next_offset = 0
        self._folder = folder
        self._size_bytes = self._position = self._indexed = 0
        self._file, self._index_file, self._index = self._open()

    def append_data(self) -> int:
        """Appends a batch of data. Returns its first offset."""
        first = self.next_offset
        records = [(None, _VALUE)] * DATA_BATCH_RECORDS
        self._append(
            build_batch(first, records, leader_epoch=1, timestamp_ms=self.now_ms), DATA_BATCH_RECORDS
        )
        return first

    def append_control(self, key: bytes, value: bytes) -> int:
        """Appends a control record. Returns its offset."""
        offset = self.next_offset
        self._append(build_control_batch(offset, 1, self.now_ms, key, value), 1)
        return offset

    @property
    def now_ms(self) -> int:
        return _BEGAN_AT_MS + self.next_offset // 10

    def close(self) -> int:
        self._file.close()
        self._index_file.close()
        return self._size_bytes + self._position

    def _append(self, batch: bytes, offset_count: int) -> None:
        if self._position + len(batch) > _SEGMENT_BYTES:
            self._size_bytes = self.close()
            self._file, self._index_file, self._index = self._open()
        if self._position - self._indexed > _INDEX_EVERY_BYTES:
            last_offset = self.next_offset + offset_count - 1
            self._index_file.write(self._index.append(last_offset, self._position))
            self._indexed = self._position
        self._file.write(batch)
        self._position += len(batch)
        self.next_offset += offset_count

    def _open(self) -> tuple[BinaryIO, BinaryIO, OffsetIndex]:
        self._position = self._indexed = 0
        path = self._folder / f"{self.next_offset:020}.log"
        return path.open("wb"), path.with_suffix(".index").open("wb"), OffsetIndex(self.next_offset)


class _Group:
    """A share group's chain of control records; its start offset follows the last delivered record."""

    def __init__(self, log: _Log) -> None:
        self._log = log
        self._checkpoint_epoch = 0
        self._back_offset = -1
        self._delta_count = DELTAS_PER_CHECKPOINT
        self._start_offset = 0
        self._outcome_count = 0

    def deliver(self, first: int, last: int) -> int:
        """Records the outcome of a range, sometimes after a failed delivery.

        Returns the number of deliveries.
        """
        member = MEMBERS[self._outcome_count % len(MEMBERS)]
        if self._delta_count >= DELTAS_PER_CHECKPOINT:
            self._checkpoint()
        delivered_count = 0
        for state in self._outcomes(self._start_offset, last, member):
            self._record(state)
            delivered_count += last - first + 1
        self._start_offset = last + 1
        return delivered_count

    def _outcomes(self, first: int, last: int, member: str) -> Iterator[StateRange]:
        self._outcome_count += 1
        count = 1
        if self._outcome_count % RELEASED_EVERY == 0:
            cause = Cause.LOCK_EXPIRED if self._outcome_count % (2 * RELEASED_EVERY) == 0 else Cause.RELEASE
            yield StateRange(first, last, RecordState.AVAILABLE, count, cause, member)
            count += 1
        yield StateRange(first, last, RecordState.ACKNOWLEDGED, count, Cause.ACCEPT, member)

    def _checkpoint(self) -> None:
        self._checkpoint_epoch += 1
        self._delta_count = 0
        start, now_ms = self._start_offset, self._log.now_ms
        checkpoint = ShareCheckpoint(GROUP, 1, self._checkpoint_epoch, now_ms, 0, 1, start, start, 0)
        self._back_offset = self._log.append_control(*encode_checkpoint(checkpoint))

    def _record(self, state: StateRange) -> None:
        self._delta_count += 1
        epoch, now_ms = self._checkpoint_epoch, self._log.now_ms
        delta = ShareDelta(GROUP, 1, epoch, now_ms, self._back_offset, (state,))
        self._back_offset = self._log.append_control(*encode_delta(delta))
