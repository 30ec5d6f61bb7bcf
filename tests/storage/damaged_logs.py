"""A small log that another process wrote, functions that damage it, and the results of its reads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from barnabas.protocol.record_batch import HEADER_BYTES, iterate_headers
from barnabas.protocol.records import iterate_records
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig
from tests.storage.log_building import DIRECTORY, NOW_MS, append, append_deltas, open_log
from tests.storage.memory_filesystem import MemoryFileSystem

INDEXED = LogConfig(index_interval_bytes=1)
"""Each batch except the first has an entry in the offset index."""
LOG_PATH = f"{DIRECTORY}/{0:020d}.log"

VALUES = [(offset, b"%d" % offset) for offset in (0, 1, 4, 5, 6, 7)]
"""The records of the log, one in each batch; share state is at 2 and 3."""
OFFSETS = [offset for offset, _ in VALUES]
END_OFFSET = 8

IN_RECORD = HEADER_BYTES + 3


async def written_log(
    config: LogConfig = INDEXED, values: Sequence[tuple[int, bytes]] = VALUES
) -> MemoryFileSystem:
    """The log with these records, closed."""
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=config)
    for offset, value in values:
        if offset == OFFSETS[2]:
            append_deltas(log, 2)
        append(log, value=value, timestamp_ms=NOW_MS + offset)
    assert log.log_end_offset == values[-1][0] + 1
    await log.close()
    return filesystem


async def reopened(
    filesystem: MemoryFileSystem, config: LogConfig = INDEXED, end_offset: int = END_OFFSET
) -> PartitionLog:
    """The log as after a clean shutdown: recovery computes no checksum."""
    return await open_log(filesystem, config=config, recovery_point=end_offset)


def batch_starts(filesystem: MemoryFileSystem, path: str = LOG_PATH) -> list[int]:
    """The position of each batch in the file, share state included."""
    return [position for position, _ in iterate_headers(bytes(filesystem.files[path]))]


def spoil(filesystem: MemoryFileSystem, number: int, at: int = IN_RECORD, bit: int = 0x10) -> None:
    """Flips a bit of the batch with this number."""
    filesystem.files[LOG_PATH][batch_starts(filesystem)[number] + at] ^= bit


def fetch(log: PartitionLog, offset: int) -> list[tuple[int, bytes | None]]:
    """(offset, value) of the records of one plain read."""
    return list(_records(b"".join(log.read(offset, bytes_max=2**20).buffers)))


def share_fetch(log: PartitionLog, offset: int) -> list[tuple[int, bytes | None]]:
    """(offset, value) of the records of one read for a share group."""
    return list(_records(b"".join(log.read_batches(offset, records_max=100, bytes_max=2**20).pieces())))


@lru_cache(maxsize=1_000)
def _records(data: bytes) -> tuple[tuple[int, bytes | None], ...]:
    """Cached, because most damages leave most answers as they are."""
    return tuple(
        (record.offset, record.value)
        for position, _ in iterate_headers(data)
        for record in iterate_records(data, position)
    )
