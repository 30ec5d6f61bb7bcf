"""A disk that becomes full at any byte: no index lacks an entry that belongs below the recovery point.

A log is filled record by record until the disk is full, opened again while it is full, filled again after it
got some room, and at last gets enough room. After every step its index files are compared with indexes that
are built from its records.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest

from barnabas.protocol.varint import Buffer
from barnabas.storage.directory.checkpoints import RECOVERY_POINT_FILE
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.errors import StorageError
from barnabas.storage.format.checkpoint_file import decode_offsets
from barnabas.storage.format.offset_index import OffsetIndex
from barnabas.storage.format.share_index import ShareIndex
from barnabas.storage.format.transaction_index import TransactionIndex
from barnabas.storage.log.appended import Append
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig
from tests.storage.log_building import (
    DIRECTORY,
    KEY,
    NOW_MS,
    TOPIC_ID,
    append,
    append_deltas,
    open_log,
    small_storage,
)
from tests.storage.memory_filesystem import MemoryFile, MemoryFileSystem
from tests.storage.transactions import Producer

CONFIG = LogConfig(index_interval_bytes=400)
LOG_PATH = f"{DIRECTORY}/{0:020d}.log"
FLUSH_EVERY = 2
"""Appends between two flushes."""
EMPTY_BYTES = 700
"""The size of a disk for the files beside the log and a little more."""
SIZES = range(EMPTY_BYTES, EMPTY_BYTES + 360)
"""Within this range a flush and an entry of every index happen."""
MORE_BYTES = 500
PLENTY_BYTES = 1 << 20
START_BYTES = 200

Indexes = dict[str, list[tuple[int, ...]]]
Write = Callable[[PartitionLog, int], Append]


class SmallFile(MemoryFile):
    def __init__(self, disk: SmallDisk, path: str) -> None:
        super().__init__(disk, path)
        self._disk = disk

    def write(self, buffers: Sequence[Buffer]) -> None:
        self._disk.check_room(sum(map(len, buffers)))
        super().write(buffers)


class SmallDisk(MemoryFileSystem):
    """A write that needs more than `size_bytes` in all files fails after a partial write."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__()
        self.size_bytes = size_bytes

    def check_room(self, count_bytes: int) -> None:
        """Makes the next write fail if it needs more."""
        self.written_before_error = max(self.size_bytes - sum(map(len, self.files.values())), 0)
        self.write_error = errno.ENOSPC if count_bytes > self.written_before_error else None

    def open(self, path: str, *, create: bool) -> MemoryFile:
        super().open(path, create=create).close()
        return SmallFile(self, path)

    def _replace_whole(self, path: str, data: bytes) -> None:
        self.check_room(len(data))
        if self.write_error is not None:
            raise OSError(self.write_error, "the disk says no", path)
        super()._replace_whole(path, data)


class Broker:
    """Processes on a small disk, one after the other."""

    def __init__(self, size_bytes: int, known: dict[bytes, Indexes]) -> None:
        self.disk = SmallDisk(size_bytes)
        self.directory: LogDirectory
        self._known = known
        """The expected index entries by the bytes of the log."""

    async def start(self) -> None:
        storage = small_storage(reopen_backoff_ms=0)
        self.directory = await LogDirectory.open(
            self.disk, "/data", node_id=1, wall_ms=lambda: NOW_MS, storage=storage
        )

    async def restart(self) -> None:
        """Kills the process; the disk has room for its next start, and little more."""
        self.disk.locks.clear()
        self.disk.size_bytes += START_BYTES
        await self.start()

    async def fill(self, write: Write, records_max: int = 1000) -> None:
        """Appends, with some flushes, until an append fails."""
        with suppress(StorageError, OSError):
            log = await self.directory.log("orders", 0, TOPIC_ID, CONFIG)
            for number in range(records_max):
                if write(log, number).error is not None:
                    return
                if number % FLUSH_EVERY:
                    await self.directory.flush()

    async def check(self) -> None:
        """The index files hold the entries of the log's records below the recovery point."""
        points = decode_offsets(bytes(self.disk.files.get(f"/data/{RECOVERY_POINT_FILE}", b"0\n0\n")))
        data = bytes(self.disk.files[LOG_PATH])
        if data not in self._known:
            self._known[data] = await indexes_made_again(data)
        for suffix, entries in self._known[data].items():
            below = [entry for entry in entries if entry[0] < points.get(KEY, 0)]
            found = entries_of(suffix, bytes(self.disk.files.get(LOG_PATH.replace(".log", suffix), b"")))
            assert found[: len(below)] == below, (self.disk.size_bytes, suffix)


async def indexes_made_again(data: bytes) -> Indexes:
    """The indexes, by suffix, of a log that is opened with these records and no other file."""
    bare = MemoryFileSystem()
    bare.make_directory(DIRECTORY)
    bare.files[LOG_PATH] = bytearray(data)
    log = await open_log(bare, config=CONFIG)
    await log.flush()
    paths = {suffix: LOG_PATH.replace(".log", suffix) for suffix in (".index", ".shareindex", ".txnindex")}
    return {suffix: entries_of(suffix, bytes(bare.files.get(path, b""))) for suffix, path in paths.items()}


def entries_of(suffix: str, data: bytes) -> list[tuple[int, ...]]:
    """(offset, ...) of each entry."""
    if suffix == ".index":
        return list(OffsetIndex(0, data).entries())
    if suffix == ".shareindex":
        shares = ShareIndex(0, data)
        return [tuple(shares[slot]) for slot in range(len(shares))]
    aborted = TransactionIndex(data)
    return [(one.last_offset, one.producer_id) for one in map(aborted.__getitem__, range(len(aborted)))]


def acknowledgements(log: PartitionLog, number: int) -> Append:
    return append_deltas(log) if number else append(log, 5)


def aborted_transactions(log: PartitionLog, number: int) -> Append:
    producer = Producer(log, number)
    return producer.abort() if producer.send().error is None else append(log)


@pytest.mark.parametrize("write", [acknowledgements, aborted_transactions])
async def test_a_disk_that_is_full_at_any_byte_costs_no_index_entry(write: Write) -> None:
    """With disks of an odd size the process is killed while the disk is full."""
    known: dict[bytes, Indexes] = {}
    for size_bytes in SIZES:
        broker = Broker(size_bytes, known)
        await broker.start()
        for more_bytes in (MORE_BYTES, PLENTY_BYTES):
            await broker.fill(write)
            await broker.check()
            if size_bytes % 2:
                await broker.restart()
            await broker.fill(write, 1)
            await broker.check()
            broker.disk.size_bytes += more_bytes
        await broker.fill(write, 4)
        await broker.directory.flush()
        await broker.check()
