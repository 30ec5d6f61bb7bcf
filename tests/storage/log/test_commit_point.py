"""Records that count only when another object says so: the seam for a log with a second copy."""

from __future__ import annotations

import errno

from barnabas.storage.errors import LogClosed, StorageError
from barnabas.storage.log.partition_log import PartitionLog
from tests.storage.log_building import append, append_deltas, open_log, sequenced
from tests.storage.memory_filesystem import MemoryFileSystem


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
    log.listeners.append(lambda moved_log: moved.append(moved_log.high_watermark))
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


async def test_a_copy_that_is_always_there_changes_nothing() -> None:
    class AtOnce:
        def written(self, end_offset: int) -> int:
            return end_offset

    log = await open_log(MemoryFileSystem())
    log.hold_until(AtOnce())
    assert append(log, 2).done
    assert log.high_watermark == 2
