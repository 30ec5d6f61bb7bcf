"""An index and its file: pending entries, flushes, and recovery."""

import errno
from functools import partial

import pytest

from barnabas.storage.format.offset_index import ENTRY_BYTES, OffsetIndex
from barnabas.storage.segments.stored_index import StoredIndex
from tests.storage.memory_filesystem import MemoryFileSystem

PATH = "index"


@pytest.fixture
def filesystem() -> MemoryFileSystem:
    return MemoryFileSystem()


def stored(filesystem: MemoryFileSystem) -> StoredIndex[OffsetIndex]:
    return StoredIndex(
        filesystem,
        PATH,
        ENTRY_BYTES,
        partial(OffsetIndex, 0),
        lambda path: filesystem.open(path, create=False),
    )


def add(index: StoredIndex[OffsetIndex], *offsets: int) -> None:
    for offset in offsets:
        index.add(index.get().append(offset, offset * 10))


def flush(index: StoredIndex[OffsetIndex]) -> None:
    count_bytes = index.pending_bytes
    index.write_pending(count_bytes)
    index.pending_written(count_bytes)


def test_entries_stay_in_memory_until_they_are_flushed(filesystem: MemoryFileSystem) -> None:
    index = stored(filesystem)
    add(index, 1, 2)
    assert (index.pending_bytes, filesystem.files) == (16, {})
    flush(index)
    assert (index.pending_bytes, index.size_bytes, len(filesystem.files[PATH])) == (0, 16, 16)
    assert filesystem.open_count == 0


def test_released_index_is_read_again_with_pending_entries(filesystem: MemoryFileSystem) -> None:
    index = stored(filesystem)
    add(index, 1, 2)
    flush(index)
    add(index, 3)
    index.release()
    assert len(index.get()) == 3
    assert index.get().last_entry() == (3, 30)


def test_entries_that_come_while_others_are_written_wait(filesystem: MemoryFileSystem) -> None:
    index = stored(filesystem)
    add(index, 1)
    index.write_pending(8)
    add(index, 2)
    index.pending_written(8)
    assert (index.pending_bytes, len(filesystem.files[PATH])) == (8, 8)
    index.release()
    assert len(index.get()) == 2


@pytest.mark.parametrize(
    ("kept", "made_again", "left_bytes", "pending_bytes"),
    [
        ((1,), (2, 3), 24, 0),
        ((1,), (2,), 16, 0),
        ((1,), (2, 4), 16, 8),
        ((1,), (4,), 8, 8),
        ((1,), (2, 3, 4, 5), 24, 16),
        ((), (), 0, 0),
        ((1, 2, 3), (), 24, 0),
    ],
)
def test_settling_keeps_equal_entries_in_the_file(
    filesystem: MemoryFileSystem,
    kept: tuple[int, ...],
    made_again: tuple[int, ...],
    left_bytes: int,
    pending_bytes: int,
) -> None:
    before = stored(filesystem)
    add(before, 1, 2, 3)
    flush(before)
    found = bytes(filesystem.files[PATH])
    index = stored(filesystem)
    index.adopt(OffsetIndex(0, found[: len(kept) * 8]), len(kept) * 8)
    add(index, *made_again)
    index.settle(found)
    assert (index.size_bytes, index.pending_bytes) == (left_bytes, pending_bytes)
    assert bytes(filesystem.files[PATH]) == found[:left_bytes]
    index.release()
    assert len(index.get()) == len(kept) + len(made_again)


def test_all_entries_of_a_new_index_are_pending(filesystem: MemoryFileSystem) -> None:
    index = stored(filesystem)
    add(index, 1, 2, 3)
    index.release()
    assert len(index.get()) == 3
    index.pending_written(len(index.pending))
    assert (index.pending, index.size_bytes) == (b"", 24)


def test_a_part_of_an_entry_that_was_written_without_room_is_cut_off(filesystem: MemoryFileSystem) -> None:
    index = stored(filesystem)
    add(index, 1)
    flush(index)
    add(index, 2)
    filesystem.write_error, filesystem.written_before_error = errno.ENOSPC, 3
    with pytest.raises(OSError, match="the disk says no"):
        flush(index)
    assert (len(filesystem.files[PATH]), index.pending_bytes) == (ENTRY_BYTES, ENTRY_BYTES)
    filesystem.write_error = None
    flush(index)
    index.release()
    assert index.get().last_entry() == (2, 20)
