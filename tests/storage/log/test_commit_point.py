"""Records that count only when another object says so: the seam for a log with a second copy."""

from __future__ import annotations

import errno

import pytest

from barnabas.storage.errors import DiskFull, LogClosed, StorageError
from barnabas.storage.log.appended import Append
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig
from tests.storage.log_building import NOW_MS, append, append_deltas, open_log, recorder, sequenced
from tests.storage.memory_filesystem import MemoryFileSystem
from tests.storage.transactions import Producer


class Copies:
    """A second copy of a log, which gets its batches later. A `CommitPoint`."""

    def __init__(self, log: PartitionLog) -> None:
        self._log = log
        self._copied_offset = log.log_end_offset
        log.hold_until(self)

    def written(self, end_offset: int) -> int:
        return min(self._copied_offset, end_offset)

    def copied_up_to(self, end_offset: int) -> None:
        self._copied_offset = end_offset
        self._log.commit(end_offset)


async def test_records_count_when_their_copy_is_there() -> None:
    log = await open_log(MemoryFileSystem())
    copies, moved = Copies(log), list[int]()
    log.when_moved(lambda: moved.append(log.high_watermark))
    first, second = append(log, 2), append(log, 3)
    assert (first.done, log.high_watermark, log.log_end_offset) == (False, 0, 5)
    assert log.read_batches(0, records_max=9, bytes_max=9).batches == []
    copies.copied_up_to(4)
    assert (first.done, second.done, log.high_watermark) == (True, False, 2)
    copies.copied_up_to(5)
    assert second.result().base_offset == 2
    assert moved == [2, 5]
    assert [span.base_offset for span in log.read_batches(0, records_max=9, bytes_max=999).batches] == [0, 2]


async def test_share_state_counts_in_the_order_of_the_log() -> None:
    log = await open_log(MemoryFileSystem())
    copies = Copies(log)
    data, state, behind = append(log), append_deltas(log, 2), append(log)
    copies.copied_up_to(3)
    assert (data.done, state.done, behind.done, log.high_watermark) == (True, True, False, 1)
    copies.copied_up_to(4)
    assert (behind.done, log.high_watermark) == (True, 4)


async def test_a_duplicate_counts_no_earlier_than_its_original() -> None:
    log = await open_log(MemoryFileSystem())
    copies = Copies(log)
    original, duplicate = sequenced(log, 0), sequenced(log, 0)
    assert (original.done, duplicate.done) == (False, False)
    copies.copied_up_to(1)
    assert duplicate.result()[:2] == original.result()[:2] == (0, 0)


async def test_what_does_not_count_yet_fails_with_the_log() -> None:
    log = await open_log(MemoryFileSystem())
    Copies(log)
    appended = append(log)
    await log.close()
    assert isinstance(appended.error, LogClosed)


async def test_what_does_not_count_yet_fails_if_the_log_goes_offline() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem)
    Copies(log)
    held = append(log)
    filesystem.write_error = errno.EIO
    lost = append(log)
    assert isinstance(held.error, StorageError)
    assert isinstance(lost.error, StorageError)
    assert log.offline is not None


async def test_what_does_not_count_yet_fails_with_a_sync_too() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem)
    copies, held = Copies(log), append(log)
    filesystem.sync_error = errno.EIO
    with pytest.raises(StorageError):
        await log.flush()
    copies.copied_up_to(1)
    assert isinstance(held.error, StorageError)
    assert log.high_watermark == 0


async def test_what_is_written_still_counts_after_a_full_disk() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=LogConfig(outlives_full_disk=True))
    copies, held = Copies(log), append(log)
    filesystem.write_error = errno.ENOSPC
    assert isinstance(append(log).error, DiskFull)
    copies.copied_up_to(1)
    assert held.result().base_offset == 0


async def test_transactions_end_when_their_markers_count() -> None:
    log = await open_log(MemoryFileSystem())
    copies = Copies(log)
    producer = Producer(log, 9)
    producer.send()
    producer.commit()
    append(log)
    stable: list[tuple[int, int]] = []
    for end_offset in range(4):
        copies.copied_up_to(end_offset)
        stable.append((log.high_watermark, log.last_stable_offset))
    assert stable == [(0, 0), (1, 0), (2, 2), (3, 3)]


async def test_retention_leaves_what_does_not_count_yet() -> None:
    log = await open_log(MemoryFileSystem(), config=LogConfig(segment_bytes=100, retention_bytes=0))
    copies = Copies(log)
    for _ in range(4):
        append(log)
    copies.copied_up_to(2)
    assert await log.enforce_retention(NOW_MS) == 2
    assert (log.log_start_offset, log.high_watermark) == (2, 2)
    copies.copied_up_to(4)
    assert await log.enforce_retention(NOW_MS) > 0
    assert log.log_start_offset == 4


async def test_appends_are_complete_in_the_order_of_the_log() -> None:
    """Also if the owner of one appends when it is complete."""
    log = await open_log(MemoryFileSystem())
    copies, order = Copies(log), list[str]()

    def append_more(_: object) -> None:
        order.append("first")
        copies.copied_up_to(3)
        append(log).when_done(recorder(order, "third"))

    append(log).when_done(append_more)
    append(log).when_done(recorder(order, "second"))
    copies.copied_up_to(1)
    assert order == ["first", "second", "third"]


async def test_appends_of_one_write_are_complete_before_those_of_the_next_one() -> None:
    """Also if the owner of the first one makes the next write count."""
    log = await open_log(MemoryFileSystem())
    copies, together, order = Copies(log), list[Append](), list[str]()

    def append_two() -> None:
        if not together:
            together.extend([append(log), append(log)])

    log.when_moved(append_two)
    copies.copied_up_to(1)
    append(log)
    together[0].when_done(lambda _: copies.copied_up_to(4))
    together[1].when_done(recorder(order, "second"))
    append(log).when_done(recorder(order, "third"))
    copies.copied_up_to(3)
    assert order == ["second", "third"]


async def test_a_defect_of_the_commit_point_takes_the_log_offline() -> None:
    class Defect:
        def written(self, end_offset: int) -> int:
            raise ValueError(end_offset)

    log = await open_log(MemoryFileSystem())
    log.hold_until(Defect())
    assert isinstance(append(log).error, StorageError)
    assert log.offline is not None
    assert log.high_watermark == 0


async def test_a_copy_that_is_always_there_changes_nothing() -> None:
    class AtOnce:
        def written(self, end_offset: int) -> int:
            return end_offset

    log = await open_log(MemoryFileSystem())
    log.hold_until(AtOnce())
    assert append(log, 2).done
    assert log.high_watermark == 2
