"""Batches of another log, appended with the offsets and epochs that they have there: the seam for a log that
follows another one.
"""

from __future__ import annotations

import pytest

from barnabas.protocol.identity import ProducerIdentity
from barnabas.protocol.record_batch import iterate_headers
from barnabas.protocol.records import iterate_records
from barnabas.storage.errors import StorageError
from barnabas.storage.filesystem import FileSystem, read_whole
from barnabas.storage.format.share_index import group_hash
from barnabas.storage.log.appended import Append, Appended
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.pending_append import AppendGroup
from barnabas.storage.share.share_state import may_be_share_state, read_control_batch
from tests.storage.log_building import (
    DIRECTORY,
    NOW_MS,
    append,
    append_checkpoint,
    append_deltas,
    open_log,
)
from tests.storage.memory_filesystem import MemoryFileSystem

SEGMENT = f"{DIRECTORY}/{0:020d}.log"


class ForeignAppend:
    """Whole batches, whose bytes go into the log as they are. A `PendingAppend`."""

    offset_count = 0
    timestamp_ms = -1

    def __init__(self, data: bytes) -> None:
        self.size_bytes = len(data)
        self.appended = Append()
        self._data = data

    def plan(self, group: AppendGroup) -> None:
        """Refuses bytes that do not continue the log."""
        headers = list(iterate_headers(self._data))
        if headers[0][1].base_offset != group.next_offset:
            raise StorageError(
                f"The batch at {headers[0][1].base_offset} does not follow {group.next_offset}."
            )
        for position, header in headers:
            batch = self._data[position : position + header.size_bytes]
            control = read_control_batch(memoryview(batch), header) if may_be_share_state(header) else None
            if control is not None:
                group.add_control(control)
            else:
                group.add((batch,), len(batch), header.last_offset, header.max_timestamp_ms)
        group.appends.append(self)

    def written(self, log_start_offset: int) -> None:
        self.appended.complete(Appended(-1, -1, -1, log_start_offset))

    def failed(self, error: Exception) -> None:
        self.appended.fail(error)


def follow(log: PartitionLog, data: bytes) -> Append:
    pending = ForeignAppend(data)
    log.append(pending, NOW_MS)
    return pending.appended


async def leading_log(filesystem: FileSystem) -> PartitionLog:
    """Data, share state of two groups, and the marker of a transaction."""
    log = await open_log(filesystem, leader_epoch=3)
    append(log, 5)
    append_checkpoint(log, "one")
    append_deltas(log, 2, "one")
    append(log, 2)
    append_checkpoint(log, "two")
    producer = ProducerIdentity(9, 0)
    assert log.append_records([(None, b"v")], NOW_MS, producer=producer).error is None
    assert log.append_marker(*producer, 0, commit=True, now_ms=NOW_MS).error is None
    append(log)
    return log


@pytest.mark.parametrize("batches_at_once", [1, 3, 100])
async def test_a_log_of_foreign_batches_equals_the_original(batches_at_once: int) -> None:
    leading_files, following_files = MemoryFileSystem(), MemoryFileSystem()
    leader = await leading_log(leading_files)
    data = read_whole(leading_files, SEGMENT)
    assert data is not None
    positions = [position for position, _ in iterate_headers(data)]
    starts = positions[::batches_at_once]
    follower = await open_log(following_files, leader_epoch=7)
    for start, end in zip(starts, [*starts[1:], len(data)], strict=True):
        assert follow(follower, data[start:end]).error is None
    assert read_whole(following_files, SEGMENT) == data
    assert follower.log_end_offset == leader.log_end_offset
    assert follower.high_watermark == leader.high_watermark
    for offset in range(leader.high_watermark):
        read = [log.read_batches(offset, records_max=1, bytes_max=1).batches for log in (leader, follower)]
        assert read[0] == read[1]
    for group_id in ("one", "two"):
        entries = [list(log.share_records.newest(group_hash(group_id))) for log in (leader, follower)]
        assert entries[0] == entries[1]


async def test_a_batch_that_does_not_continue_the_log_is_refused() -> None:
    filesystem = MemoryFileSystem()
    await leading_log(filesystem)
    data = read_whole(filesystem, SEGMENT)
    assert data is not None
    (_, first), (second_at, _), *_ = iterate_headers(data)
    follower = await open_log(MemoryFileSystem())
    assert isinstance(follow(follower, data[second_at:]).error, StorageError)
    assert follow(follower, data[:second_at]).error is None
    assert follower.log_end_offset == first.last_offset + 1
    (read,) = follower.read_batches(0, records_max=1, bytes_max=1).batches
    batch = data[:second_at]
    assert [record.value for record in iterate_records(batch)] == [b"value"] * 5
    assert (read.base_offset, read.last_offset) == (0, 4)
