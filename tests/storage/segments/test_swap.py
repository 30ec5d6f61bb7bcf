"""Swaps, and a crash at any step of them: it leaves the old segments or the new one, never a mixture."""

from __future__ import annotations

import errno

import pytest

from barnabas.storage.errors import LogOffline
from barnabas.storage.format.cleaned_mark import is_mark
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.segments.swap import complete_swaps
from tests.storage.cleaner.crashing_filesystem import CrashingFileSystem
from tests.storage.cleaner.dirty_logs import (
    COMPACTED,
    SMALL,
    Kept,
    append_batch,
    batches_on_disk,
    clean,
    kept_of,
    keyed,
    latest_by_key,
    records_read,
    roll,
)
from tests.storage.log_building import (
    DIRECTORY,
    append,
    append_checkpoint,
    append_deltas,
    open_log,
)
from tests.storage.memory_filesystem import MemoryFileSystem


async def three_segments(filesystem: MemoryFileSystem) -> tuple[PartitionLog, Kept]:
    """A log with two segments to clean, which become one, and the active one; and the content that stays."""
    log = await open_log(filesystem, config=SMALL)
    for _ in range(2):
        append(log, 2)
        append_checkpoint(log)
        append_deltas(log, 4)
        append(log)
        await roll(log)
    append_checkpoint(log)
    append(log)
    await log.flush()
    return log, kept_of(log)


@pytest.mark.parametrize("recovery_point", [0, 8, 10**6])
async def test_a_crash_at_any_operation_leaves_the_same_log(recovery_point: int) -> None:
    filesystem = CrashingFileSystem()
    log, before = await three_segments(filesystem)
    old = _offsets_on_disk(filesystem)
    filesystem.watch()
    await clean(log)
    new = _offsets_on_disk(filesystem)
    filesystem.crash_here()
    outcomes = set[tuple[tuple[int, int], ...]]()
    for left in filesystem.left_by_crashes():
        again = await open_log(left, config=SMALL, recovery_point=min(recovery_point, before.log_end_offset))
        assert kept_of(again) == before
        outcomes.add(_offsets_on_disk(left))
        assert not [path for path in left.files if path.endswith((".cleaned", ".swap"))]
        await again.close()
    assert outcomes == {old, new}
    await log.close()


async def test_a_crash_while_compacting_leaves_the_latest_of_each_key() -> None:
    filesystem = CrashingFileSystem()
    log = await open_log(filesystem, config=COMPACTED)
    for number in range(30):
        append_batch(log, keyed(b"key %d" % (number % 4), b"value %d" % number))
        if number % 10 == 9:
            await roll(log)
    before = records_read(log)
    filesystem.watch()
    await clean(log)
    after = records_read(log)
    filesystem.crash_here()
    outcomes = set[int]()
    for left in filesystem.left_by_crashes():
        again = await open_log(left, config=COMPACTED, recovery_point=30)
        found = records_read(again)
        assert latest_by_key(found) == latest_by_key(before)
        assert set(after) <= set(found) <= set(before)
        outcomes.add(len(found))
        await again.close()
    assert outcomes == {30, 10, 4}, "none, one or both of the new segments are in place"
    await log.close()


async def test_a_crash_while_recovery_ends_a_swap_changes_nothing() -> None:
    filesystem = CrashingFileSystem()
    log, before = await three_segments(filesystem)
    filesystem.watch()
    await clean(log)
    await log.close()
    for first_left in filesystem.left_by_crashes():
        if not any(path.endswith(".log.swap") for path in first_left.files):
            continue
        second = CrashingFileSystem()
        second.directories, second.files = first_left.directories, first_left.files
        second.watch()
        complete_swaps(second, DIRECTORY)
        for left in second.left_by_crashes():
            again = await open_log(left, config=SMALL, recovery_point=before.log_end_offset)
            assert kept_of(again) == before
            await again.close()


async def test_a_swap_file_that_is_not_whole_does_not_count() -> None:
    filesystem = MemoryFileSystem()
    log, before = await three_segments(filesystem)
    await log.close()
    torn = bytes(filesystem.files[f"{DIRECTORY}/{0:020d}.log"])[:-3]
    filesystem.files[f"{DIRECTORY}/{0:020d}.log.swap"] = bytearray(torn)
    again = await open_log(filesystem, config=SMALL, recovery_point=before.log_end_offset)
    assert kept_of(again) == before
    assert not [path for path in filesystem.files if path.endswith(".swap")]
    await again.close()


@pytest.mark.parametrize("failing", [".index.cleaned", ".shareindex.cleaned", ".log.cleaned"])
async def test_an_error_before_the_new_segment_counts_leaves_the_old_ones(
    failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filesystem = MemoryFileSystem()
    log, before = await three_segments(filesystem)
    rename = filesystem.rename

    def fail(source: str, target: str) -> None:
        if source.endswith(failing):
            raise OSError(errno.EIO, "no", source)
        rename(source, target)

    monkeypatch.setattr(filesystem, "rename", fail)
    with pytest.raises(OSError, match="no"):
        await clean(log)
    assert log.offline is None
    assert kept_of(log) == before
    assert not any(is_mark(one) for one in batches_on_disk(filesystem))
    assert not [path for path in filesystem.files if path.endswith((".cleaned", ".swap"))]
    await log.close()


@pytest.mark.parametrize("failing", ["remove", "sync_directory"])
async def test_a_log_goes_offline_if_it_is_unknown_whether_the_new_segment_counts(
    failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filesystem = MemoryFileSystem()
    log, before = await three_segments(filesystem)
    sync_directory = filesystem.sync_directory

    def fail(path: str) -> None:
        raise OSError(errno.EIO, "no", path)

    def fail_once_it_may_count(path: str) -> None:
        if any(name.endswith(".log.swap") for name in filesystem.files):
            monkeypatch.setattr(filesystem, failing, fail)
            fail(path)
        sync_directory(path)

    monkeypatch.setattr(filesystem, "sync_directory", fail_once_it_may_count)
    with pytest.raises(LogOffline):
        await clean(log)
    assert log.offline is not None
    monkeypatch.undo()
    await log.close(clean=False)
    again = await open_log(filesystem, config=SMALL, recovery_point=log.recovery_point)
    assert kept_of(again) == before
    await again.close()


async def test_a_new_segment_that_is_taken_back_never_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    filesystem = MemoryFileSystem()
    log, before = await three_segments(filesystem)
    sync_directory = filesystem.sync_directory

    def fail_once(path: str) -> None:
        sync_directory(path)
        if any(name.endswith(".log.swap") for name in filesystem.files):
            monkeypatch.undo()
            raise OSError(errno.EIO, "no", path)

    monkeypatch.setattr(filesystem, "sync_directory", fail_once)
    with pytest.raises(OSError, match="no"):
        await clean(log)
    assert (log.offline, kept_of(log)) == (None, before)
    left = filesystem.after_power_loss()
    assert not [path for path in left.files if path.endswith((".cleaned", ".swap"))]
    await log.close()


def _offsets_on_disk(filesystem: MemoryFileSystem) -> tuple[tuple[int, int], ...]:
    return tuple((one.base_offset, one.last_offset) for one in batches_on_disk(filesystem))
