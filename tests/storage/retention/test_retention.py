"""Retention by size, time and log start, and the checkpoints of share groups that keep segments."""

import errno
from functools import partial

import pytest

from barnabas.storage.errors import LogOffline
from barnabas.storage.format.share_index import group_hash
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig
from tests.storage.log_building import (
    COLLIDING,
    NOW_MS,
    append,
    append_checkpoint,
    append_deltas,
    base_offsets_read,
    open_log,
    recorder,
)
from tests.storage.memory_filesystem import MemoryFileSystem

HOUR_MS = 3600 * 1000


@pytest.fixture
def filesystem() -> MemoryFileSystem:
    return MemoryFileSystem()


async def filled(filesystem: MemoryFileSystem, config: LogConfig, count: int = 10) -> PartitionLog:
    """Two batches a segment, one hour apart."""
    log = await open_log(filesystem, config=config)
    for number in range(count):
        append(log, timestamp_ms=NOW_MS + number * HOUR_MS)
    return log


def config(**settings: int | bool) -> LogConfig:
    return LogConfig(segment_bytes=200, **settings)  # type: ignore[arg-type]


async def test_segments_beyond_the_size_are_removed_oldest_first(filesystem: MemoryFileSystem) -> None:
    log = await filled(filesystem, config(retention_bytes=300, retention_ms=-1))
    assert await log.enforce_retention(NOW_MS) == 2
    assert (log.log_start_offset, base_offsets_read(log, 4)) == (4, [4, 5, 6, 7, 8, 9])
    assert len([name for name in filesystem.files if name.endswith(".log")]) == 3


async def test_segments_are_removed_when_their_newest_record_is_too_old(filesystem: MemoryFileSystem) -> None:
    log = await filled(filesystem, config(retention_ms=5 * HOUR_MS))
    assert await log.enforce_retention(NOW_MS + 8 * HOUR_MS) == 1
    assert log.log_start_offset == 2


async def test_all_segments_may_be_removed(filesystem: MemoryFileSystem) -> None:
    log = await filled(filesystem, config(retention_ms=HOUR_MS))
    assert await log.enforce_retention(NOW_MS + 100 * HOUR_MS) == 5
    assert (log.log_start_offset, log.high_watermark, log.size_bytes) == (10, 10, 0)
    assert append(log).result().base_offset == 10
    assert await log.enforce_retention(NOW_MS) == 0


async def test_segments_below_the_log_start_are_removed_under_any_policy(
    filesystem: MemoryFileSystem,
) -> None:
    log = await filled(filesystem, config(delete_enabled=False, retention_ms=1))
    log.delete_records(5)
    assert await log.enforce_retention(NOW_MS + 100 * HOUR_MS) == 2
    assert (log.log_start_offset, log.segment_count) == (5, 3)


async def test_no_limits_keep_everything(filesystem: MemoryFileSystem) -> None:
    log = await filled(filesystem, config(retention_ms=-1))
    assert await log.enforce_retention(NOW_MS + 10**6 * HOUR_MS) == 0


async def test_listeners_are_called_when_the_log_start_moves(filesystem: MemoryFileSystem) -> None:
    log = await filled(filesystem, config(retention_bytes=300))
    heard: list[str] = []
    log.when_moved(partial(recorder(heard, "moved"), log))
    await log.enforce_retention(NOW_MS)
    assert heard == ["moved"]


async def test_records_without_a_time_are_not_too_old(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, config=config(retention_ms=HOUR_MS))
    append(log, timestamp_ms=-1)
    assert await log.enforce_retention(NOW_MS + HOUR_MS) == 0
    assert await log.enforce_retention(NOW_MS + HOUR_MS + 1) == 1


async def test_segment_with_a_live_groups_checkpoint_stays_until_there_is_a_newer_one(
    filesystem: MemoryFileSystem,
) -> None:
    log = await open_log(filesystem, config=config(retention_ms=HOUR_MS))
    append_checkpoint(log, "live")
    append(log)
    append_deltas(log, group_id="live")
    told: list[frozenset[str]] = []
    log.pin_listeners.append(lambda _, groups: told.append(groups))
    segments = log.segment_count
    assert await log.enforce_retention(NOW_MS + 2 * HOUR_MS) == 0
    assert told == [{"live"}]
    append_checkpoint(log, "live")
    assert await log.enforce_retention(NOW_MS + 2 * HOUR_MS) == segments
    assert log.size_bytes > 0
    assert told == [{"live"}] * 2


async def test_deleted_groups_keep_nothing(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, config=config(retention_ms=HOUR_MS))
    append(log)
    append_checkpoint(log, "gone")
    append_checkpoint(log, "gone", deleted=True)
    append(log)
    assert await log.enforce_retention(NOW_MS + 2 * HOUR_MS) > 0
    assert log.size_bytes == 0


@pytest.mark.parametrize("deleted", [False, True])
async def test_group_of_the_same_hash_does_not_stand_in_for_another(
    filesystem: MemoryFileSystem, deleted: bool
) -> None:
    busy, idle = COLLIDING
    assert group_hash(busy) == group_hash(idle)
    log = await open_log(filesystem, config=config(retention_bytes=300))
    append_checkpoint(log, idle)
    for _ in range(10):
        append(log)
    append_checkpoint(log, busy, deleted=deleted)
    told: list[frozenset[str]] = []
    log.pin_listeners.append(lambda _, groups: told.append(groups))
    assert await log.enforce_retention(NOW_MS) == 0
    assert told == [{idle}]
    append_checkpoint(log, idle)
    assert await log.enforce_retention(NOW_MS) > 3
    assert told == [{idle}]


async def test_groups_of_the_same_hash_in_one_segment_are_distinguished(filesystem: MemoryFileSystem) -> None:
    gone, live = COLLIDING
    log = await open_log(filesystem, config=LogConfig(retention_ms=HOUR_MS))
    append(log)
    append_checkpoint(log, gone)
    append_checkpoint(log, live)
    append_checkpoint(log, gone, deleted=True)
    told: list[frozenset[str]] = []
    log.pin_listeners.append(lambda _, groups: told.append(groups))
    assert await log.enforce_retention(NOW_MS + 2 * HOUR_MS) == 0
    assert told == [{live}]


async def test_segment_is_kept_for_a_group_without_reading_from_it(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, config=config(retention_ms=HOUR_MS))
    append_checkpoint(log, "live")
    append(log)
    filesystem.read_error = errno.EIO
    assert await log.enforce_retention(NOW_MS + 2 * HOUR_MS) == 0


async def test_segment_of_share_state_alone_is_removed_with_those_before_it(
    filesystem: MemoryFileSystem,
) -> None:
    log = await open_log(filesystem, config=config(retention_ms=HOUR_MS))
    append(log)
    append_deltas(log, 4)
    append_checkpoint(log, "live")
    await log.enforce_retention(NOW_MS + 2 * HOUR_MS)
    assert log.log_start_offset == 5
    assert log.high_watermark == 5


async def test_file_that_cannot_be_removed_takes_the_log_offline(
    filesystem: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = await filled(filesystem, config(retention_bytes=300))

    def refuse(path: str) -> None:
        raise OSError(errno.EIO, "the disk says no", path)

    monkeypatch.setattr(filesystem, "remove", refuse)
    with pytest.raises(LogOffline):
        await log.enforce_retention(NOW_MS)
