"""An index and its file: pending entries, flushes, and recovery."""

import errno
from functools import partial

import pytest

from barnabas.storage.errors import IndexDamaged
from barnabas.storage.format.index_checksums import NO_BYTES, IndexChecksum
from barnabas.storage.format.offset_index import ENTRY_BYTES, OffsetIndex
from barnabas.storage.segments.stored_index import StoredIndex
from tests.storage.memory_filesystem import MemoryFileSystem

PATH = "index"


@pytest.fixture
def filesystem() -> MemoryFileSystem:
    return MemoryFileSystem()


def stored(filesystem: MemoryFileSystem, damaged: set[str] | None = None) -> StoredIndex[OffsetIndex]:
    return StoredIndex(
        filesystem,
        PATH,
        ENTRY_BYTES,
        partial(OffsetIndex, 0),
        lambda path: filesystem.open(path, create=False),
        set() if damaged is None else damaged,
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
    index.adopt(OffsetIndex(0, found[: len(kept) * 8]), found[: len(kept) * 8])
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


# Checksums.


def test_a_changed_index_is_damaged_until_it_is_rebuilt(filesystem: MemoryFileSystem) -> None:
    damaged: set[str] = set()
    index = stored(filesystem, damaged)
    add(index, 1, 2)
    flush(index)
    index.release()
    filesystem.files[PATH][3] ^= 1
    for look in (index.get, index.peek):
        with pytest.raises(IndexDamaged, match=PATH):
            look()
    assert (index.is_damaged, damaged) == (True, {PATH})
    index.rebuilt()
    assert not damaged


def test_a_missing_index_is_damaged(filesystem: MemoryFileSystem) -> None:
    index = stored(filesystem)
    add(index, 1)
    flush(index)
    index.release()
    filesystem.remove(PATH)
    with pytest.raises(IndexDamaged, match=PATH):
        index.get()


def test_a_file_of_the_expected_size_is_trusted_and_compared_when_it_is_loaded(
    filesystem: MemoryFileSystem,
) -> None:
    first = stored(filesystem)
    add(first, 1, 2)
    flush(first)
    again = stored(filesystem)
    again.expected = first.checksum
    assert again.trust(16)
    assert len(again.get()) == 2
    again.release()
    filesystem.files[PATH][3] ^= 1
    with pytest.raises(IndexDamaged):
        again.get()


def test_a_shorter_file_than_expected_must_be_rebuilt(filesystem: MemoryFileSystem) -> None:
    index = stored(filesystem)
    index.expected = IndexChecksum(16, 0)
    assert [index.trust(size_bytes) for size_bytes in (0, 8, 15)] == [False] * 3


def test_an_index_of_unknown_origin_has_no_checksum(filesystem: MemoryFileSystem) -> None:
    filesystem.files[PATH] = bytearray(16)
    index = stored(filesystem)
    assert index.trust(16)
    assert index.checksum is None
    add(index, 3)
    flush(index)
    assert index.checksum is None


@pytest.mark.parametrize("checked_bytes", [8, 24])
def test_an_index_with_another_size_than_its_checksum_is_not_trusted(
    filesystem: MemoryFileSystem, checked_bytes: int
) -> None:
    """Entries that came later may be right, but nothing proves it."""
    filesystem.files[PATH] = bytearray(16)
    index = stored(filesystem)
    index.expected = IndexChecksum(checked_bytes, 0)
    assert not index.trust(16)


def test_kept_entries_are_known_if_they_were_before(filesystem: MemoryFileSystem) -> None:
    first = stored(filesystem)
    add(first, 1, 2)
    flush(first)
    content = bytes(filesystem.files[PATH])
    for expected, is_known in ((first.checksum, True), (None, False)):
        index = stored(filesystem)
        index.expected = expected
        assert index.is_intact(content)
        index.adopt(OffsetIndex(0, content[:8]), content[:8])
        assert index.checksum == (NO_BYTES.extended(content[:8]) if is_known else None)
    assert index.is_intact(content[:8])
    index.expected = first.checksum
    assert not index.is_intact(content[:8])
