"""Cleaning of share state: removed records, remaining records, and marks."""

from __future__ import annotations

import errno

import pytest

from barnabas.protocol.control_record import ControlType
from barnabas.protocol.errors import ApiError
from barnabas.storage.errors import StorageError
from barnabas.storage.format.cleaned_mark import is_mark
from barnabas.storage.format.share_index import group_hash
from barnabas.storage.format.share_snapshot import FILE_NAME as SHARE_SNAPSHOT_FILE
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig
from tests.storage.cleaner.dirty_logs import (
    SMALL,
    batches_on_disk,
    clean,
    close_segment,
    everything,
    kept_of,
    roll,
)
from tests.storage.log_building import (
    DIRECTORY,
    NOW_MS,
    append,
    append_checkpoint,
    append_deltas,
    base_offsets_read,
    open_log,
)
from tests.storage.memory_filesystem import MemoryFileSystem

_DAY_MS = 24 * 60 * 60 * 1000


async def worked_log(filesystem: MemoryFileSystem) -> PartitionLog:
    """Offsets 0 and 1 data, 2 to 11 state, 12 data, 13 and 14 state, then a new segment with a checkpoint of
    the group at 15.
    """
    log = await open_log(filesystem, config=SMALL)
    append(log, 2)
    append_checkpoint(log)
    append_deltas(log, 9)
    append(log)
    append_deltas(log, 2)
    await roll(log)
    append_checkpoint(log)
    return log


async def test_runs_below_the_newest_checkpoint_become_marks() -> None:
    filesystem = MemoryFileSystem()
    log = await worked_log(filesystem)
    before = kept_of(log)
    cleaned = await clean(log)
    assert cleaned is not None
    assert cleaned.written_bytes < cleaned.read_bytes
    left = batches_on_disk(filesystem)
    assert [(one.base_offset, one.last_offset, is_mark(one)) for one in left] == [
        (0, 1, False),
        (2, 11, True),
        (12, 12, False),
        (13, 14, True),
        (15, 15, False),
    ]
    assert kept_of(log) == before
    await log.close()


async def test_a_cleaned_log_opens_as_it_was() -> None:
    filesystem = MemoryFileSystem()
    log = await worked_log(filesystem)
    before = kept_of(log)
    await clean(log)
    await log.close()
    for recovery_point in (0, 5, 16):
        again = await open_log(filesystem.copy(), config=SMALL, recovery_point=recovery_point)
        assert kept_of(again) == before
        await again.close()


async def test_indexes_that_are_lost_are_made_again_from_marks() -> None:
    filesystem = MemoryFileSystem()
    log = await worked_log(filesystem)
    before = kept_of(log)
    await clean(log)
    await log.close()
    index_path = f"{DIRECTORY}/{0:020d}.shareindex"
    index = bytes(filesystem.files.pop(index_path))
    again = await open_log(filesystem, config=SMALL, recovery_point=16)
    assert kept_of(again) == before
    assert bytes(filesystem.files[index_path]) == index
    await again.close()


async def test_state_at_or_above_the_earliest_share_offset_stays() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=SMALL)
    append_deltas(log, 3, "old")
    append(log)
    append_checkpoint(log, "idle")
    append_checkpoint(log, "busy")
    append_deltas(log, 3, "busy")
    await roll(log)
    append_checkpoint(log, "busy")
    assert log.share_records.earliest_offset == 4
    await clean(log)
    left = [one for one in batches_on_disk(filesystem) if one.is_control]
    assert [(one.base_offset, is_mark(one)) for one in left][:2] == [(0, True), (4, False)]
    assert len(left) == 1 + 5 + 1
    entry = next(log.share_records.newest(group_hash("idle")))
    assert log.share_records.read(entry)[0] == 4
    await log.close()


async def test_a_deleted_group_goes_with_its_tombstone() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=SMALL)
    append(log)
    append_checkpoint(log)
    append_deltas(log, 4)
    append_checkpoint(log, deleted=True)
    append(log)
    await roll(log)
    await clean(log)
    assert [is_mark(one) for one in batches_on_disk(filesystem)] == [False, True, False]
    await log.close()
    again = await open_log(filesystem, config=SMALL)
    assert not again.share_records.checkpoint_offsets
    assert base_offsets_read(again) == [0, 7]
    await again.close()


async def test_a_deleted_group_does_not_come_back() -> None:
    """Its tombstone is in a segment that is worth cleaning, its older state in a segment that is not."""
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=SMALL)
    append_checkpoint(log, "gone")
    append(log, 100, value=b"v" * 30)
    await roll(log)
    append_deltas(log, 8, "gone")
    append_checkpoint(log, "gone", deleted=True)
    await roll(log)
    append(log)
    plan = await log.plan_cleaning(0, NOW_MS)
    assert await log.clean(plan._replace(worth=[False, False, True]), NOW_MS) is not None
    await log.close()
    filesystem.files.pop(f"{DIRECTORY}/{SHARE_SNAPSHOT_FILE}", None)
    again = await open_log(filesystem, config=SMALL, recovery_point=11)
    assert not again.share_records.checkpoint_offsets
    await again.close()


LARGE = LogConfig(segment_bytes=100_000)


async def reopened_without_hint(filesystem: MemoryFileSystem, log: PartitionLog) -> PartitionLog:
    """The heads are those that the log itself tells."""
    await log.close()
    del filesystem.files[f"{DIRECTORY}/{SHARE_SNAPSHOT_FILE}"]
    return await open_log(filesystem, config=LARGE, recovery_point=log.recovery_point)


async def test_a_tombstone_stays_with_its_groups_state_even_if_other_groups_wrote_since_the_plan() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=LARGE)
    append(log, value=b"x" * 90_000)
    append_checkpoint(log, "gone")
    append_deltas(log, 3, "gone")
    await roll(log)
    append_checkpoint(log, "busy")
    append_deltas(log, 560, "busy")
    append_checkpoint(log, "busy")
    append_checkpoint(log, "gone", deleted=True)
    append_deltas(log, 2, "busy")
    append(log, value=b"x" * 15_000)
    await roll(log)
    plan = await log.plan_cleaning(0, NOW_MS)
    assert list(plan.worth) == [False, True]
    append_checkpoint(log, "busy")
    await log.flush()
    assert await log.clean(plan, NOW_MS) is not None
    again = await reopened_without_hint(filesystem, log)
    assert set(again.share_records.checkpoint_offsets) == {"busy"}
    await clean(again)
    assert set(again.share_records.checkpoint_offsets) == {"busy"}
    await again.close()


async def test_a_tombstone_stays_with_its_groups_state_even_if_other_groups_write_during_the_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=LARGE)
    append_checkpoint(log, "busy")
    append_deltas(log, 560, "busy")
    append_checkpoint(log, "busy")
    append_checkpoint(log, "gone")
    append(log, value=b"x" * 8_000)
    await roll(log)
    append(log, value=b"x" * 70_000)
    append_checkpoint(log, "gone", deleted=True)
    append_deltas(log, 160, "busy")
    await roll(log)
    plan = await log.plan_cleaning(0, NOW_MS)
    rename = filesystem.rename

    def meanwhile(source: str, target: str) -> None:
        """The first group of segments is written, the second is not."""
        monkeypatch.undo()
        append_checkpoint(log, "busy")
        rename(source, target)

    monkeypatch.setattr(filesystem, "rename", meanwhile)
    await log.clean(plan._replace(worth=[True, True]), NOW_MS)
    again = await reopened_without_hint(filesystem, log)
    assert set(again.share_records.checkpoint_offsets) == {"busy"}
    await again.close()


async def test_neighbouring_marks_become_one_when_cleaned_again() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=SMALL)
    for _ in range(3):
        append_checkpoint(log)
        append_deltas(log, 3)
        await roll(log)
        append_checkpoint(log)
        await clean(log)
    await roll(log)
    append_checkpoint(log)
    await clean(log)
    left = batches_on_disk(filesystem)
    assert [(one.base_offset, one.last_offset, is_mark(one)) for one in left] == [
        (0, 14, True),
        (15, 15, False),
    ]
    assert log.segment_count == 2
    await log.close()


async def test_marks_keep_the_leader_epochs_apart() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=SMALL)
    append_deltas(log, 3)
    log.leader_epoch = 1
    append_deltas(log, 3)
    append(log)
    await roll(log)
    await clean(log)
    assert [(one.base_offset, one.leader_epoch) for one in batches_on_disk(filesystem)] == [
        (0, 0),
        (3, 1),
        (6, 1),
    ]
    await log.close()


async def test_the_active_segment_is_never_touched() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=SMALL)
    append_deltas(log, 5)
    append(log)
    await log.flush()
    plan = await log.plan_cleaning(0, NOW_MS)
    assert not plan.sources
    await log.close()


async def test_segments_that_are_not_durable_are_not_cleaned() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=SMALL)
    append_deltas(log, 5)
    close_segment(log)
    assert not (await log.plan_cleaning(0, NOW_MS)).sources
    await log.flush()
    assert len((await log.plan_cleaning(0, NOW_MS)).sources) == 1
    await log.close()


async def test_small_segments_become_one() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=SMALL)
    for _ in range(4):
        append(log)
        append_checkpoint(log)
        append_deltas(log, 8)
        await roll(log)
    append_checkpoint(log)
    before = kept_of(log)
    assert log.segment_count == 5
    await clean(log)
    assert log.segment_count == 2
    assert kept_of(log) == before
    await log.close()


async def test_readers_continue_at_their_position() -> None:
    filesystem = MemoryFileSystem()
    log = await worked_log(filesystem)
    assert base_offsets_read(log) == [0, 12]
    hinted = log.read_batches(0, records_max=2, bytes_max=10_000)
    assert [span.last_offset for span in hinted.batches] == [1]
    await clean(log)
    following = log.read_batches(2, records_max=5, bytes_max=10_000)
    assert [span.base_offset for span in following.batches] == [12]
    assert base_offsets_read(log) == [0, 12]
    await log.close()


async def test_a_state_record_is_found_behind_a_swap() -> None:
    filesystem = MemoryFileSystem()
    log = await worked_log(filesystem)
    await clean(log)
    entry = next(log.share_records.newest(group_hash("group")))
    assert (entry.offset, entry.kind) == (15, ControlType.SHARE_CHECKPOINT)
    assert log.share_records.read(entry)[0] == 15
    await log.close()


async def test_retention_that_comes_between_wins() -> None:
    filesystem = MemoryFileSystem()
    log = await worked_log(filesystem)
    plan = everything(await log.plan_cleaning(0, NOW_MS))
    assert await log.enforce_retention(NOW_MS + 8 * _DAY_MS) == 1
    assert await log.clean(plan, NOW_MS) is None
    assert not [path for path in filesystem.files if path.endswith((".cleaned", ".swap"))]
    with pytest.raises(ApiError):
        log.read(0, bytes_max=100)
    await log.close()


async def test_a_log_that_closes_stays_unchanged() -> None:
    filesystem = MemoryFileSystem()
    log = await worked_log(filesystem)
    plan = everything(await log.plan_cleaning(0, NOW_MS))
    log.stop_cleaning()
    assert await log.clean(plan, NOW_MS) is None
    assert not (await log.plan_cleaning(0, NOW_MS)).sources
    await log.close()
    assert sum(is_mark(one) for one in batches_on_disk(filesystem)) == 0


@pytest.mark.parametrize("suffix", [".log.cleaned", ".index.cleaned", ".shareindex.cleaned"])
async def test_a_full_disk_leaves_the_log_unchanged(suffix: str) -> None:
    filesystem = MemoryFileSystem()
    log = await worked_log(filesystem)
    before = kept_of(log)
    filesystem.write_error, filesystem.failing_suffix = errno.ENOSPC, suffix
    with pytest.raises(OSError, match="the disk says no"):
        await clean(log)
    filesystem.write_error = None
    assert log.offline is None
    assert kept_of(log) == before
    assert not [path for path in filesystem.files if path.endswith((".cleaned", ".swap"))]
    append(log)
    assert await clean(log) is not None
    await log.close()


async def test_an_error_after_the_swap_is_repaired_by_recovery(monkeypatch: pytest.MonkeyPatch) -> None:
    filesystem = MemoryFileSystem()
    log = await worked_log(filesystem)
    before = kept_of(log)

    def fail_last(source: str, target: str) -> None:
        if source.endswith(".log.swap"):
            raise OSError(errno.EIO, "no", source)
        rename(source, target)

    rename = filesystem.rename
    monkeypatch.setattr(filesystem, "rename", fail_last)
    with pytest.raises(StorageError):
        await clean(log)
    assert log.offline is not None
    await log.close(clean=False)
    monkeypatch.undo()
    again = await open_log(filesystem, config=SMALL, recovery_point=15)
    assert kept_of(again) == before
    assert sum(is_mark(one) for one in batches_on_disk(filesystem)) == 2
    await again.close()
