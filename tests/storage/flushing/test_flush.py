"""Syncs and flushes of a log: durable data, snapshots of producers, failures and full disks."""

import asyncio
import errno
from collections.abc import Sequence

import pytest

from barnabas.storage.errors import DiskFull, LogOffline
from barnabas.storage.format.leader_epochs import LeaderEpochs
from barnabas.storage.format.producer_snapshot import (
    ProducerSnapshotEntry,
    decode_snapshot,
    encode_snapshot,
)
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig
from barnabas.storage.state import producer_snapshots
from tests.storage.log_building import (
    DIRECTORY,
    NOW_MS,
    append,
    append_deltas,
    open_log,
    outcomes,
    sequenced,
    small_storage,
    values_read,
)
from tests.storage.memory_filesystem import MemoryFileSystem


@pytest.fixture
def filesystem() -> MemoryFileSystem:
    return MemoryFileSystem()


def snapshots(filesystem: MemoryFileSystem) -> list[int]:
    return sorted(
        int(name.rpartition("/")[2].removesuffix(".snapshot"))
        for name in filesystem.files
        if name.endswith(".snapshot")
    )


async def with_several_segments(filesystem: MemoryFileSystem) -> PartitionLog:
    """A log of 20 unflushed records, some of them share state."""
    log = await open_log(filesystem, config=LogConfig(segment_bytes=300, index_interval_bytes=50))
    for _ in range(5):
        append(log, 3)
        append_deltas(log)
    return log


async def test_flush_makes_everything_durable_and_moves_the_recovery_point(
    filesystem: MemoryFileSystem,
) -> None:
    log = await with_several_segments(filesystem)
    assert (log.recovery_point, log.needs_flush) == (0, True)
    await log.flush()
    assert (log.recovery_point, log.needs_flush, log.flusher.unflushed_bytes) == (20, False, 0)
    not_durable = {
        name
        for name, content in filesystem.files.items()
        if filesystem.synced.get(name, b"") != bytes(content)
    }
    assert not_durable == {f"{DIRECTORY}/index-checksums"}, "only a hint"


async def test_a_sync_makes_records_durable_and_leaves_the_files_beside_them(
    filesystem: MemoryFileSystem,
) -> None:
    log = await with_several_segments(filesystem)
    written = set(filesystem.files)
    await log.flusher.sync()
    assert (log.durable_offset, log.flusher.needs_sync, log.flusher.unflushed_bytes) == (20, False, 0)
    assert (log.recovery_point, log.needs_flush) == (0, True)
    assert log.flusher.recovery_scan_bytes == log.size_bytes
    assert set(filesystem.files) == written
    assert values_read(await open_log(filesystem.after_power_loss())) == values_read(log)
    await log.flush()
    assert (log.recovery_point, log.flusher.recovery_scan_bytes) == (20, 0)


async def test_appends_during_a_sync_are_left_for_the_next(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem)
    append(log, 3)
    filesystem.hold()
    syncing = asyncio.create_task(log.flusher.sync())
    await asyncio.sleep(0)
    append(log, 2)
    filesystem.release()
    await syncing
    assert (log.durable_offset, log.flusher.needs_sync) == (3, True)
    await log.flusher.sync()
    assert (log.durable_offset, log.flusher.unflushed_bytes) == (5, 0)


async def test_a_sync_that_fails_takes_the_log_offline(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, config=OUTLIVING)
    append(log)
    filesystem.sync_error = errno.EIO
    with pytest.raises(LogOffline):
        await log.flusher.sync()
    assert log.offline is not None
    assert not log.flusher.needs_sync


async def test_appends_during_a_flush_are_left_for_the_next(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem)
    append(log, 3)
    filesystem.hold()
    flushing = asyncio.create_task(log.flush())
    await asyncio.sleep(0)
    append(log, 2)
    filesystem.release()
    await flushing
    assert (log.recovery_point, log.needs_flush) == (3, True)
    await log.flush()
    assert (log.recovery_point, log.flusher.unflushed_bytes) == (5, 0)


async def test_index_entries_reach_the_file_with_the_flush(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, config=LogConfig(index_interval_bytes=50))
    shares = f"{DIRECTORY}/{0:020d}.shareindex"
    for _ in range(3):
        append(log)
        append_deltas(log)
    assert len(filesystem.files[shares]) == 0
    await log.flush()
    assert len(filesystem.files[shares]) == 60
    append_deltas(log)
    await log.flush()
    assert len(filesystem.files[shares]) == 80


@pytest.mark.parametrize("suffix", [".log", ".index", ""])
async def test_failed_flush_takes_the_log_offline(filesystem: MemoryFileSystem, suffix: str) -> None:
    log = await open_log(filesystem, config=LogConfig(index_interval_bytes=50))
    for _ in range(3):
        append(log)
    if suffix:
        filesystem.sync_error = errno.EIO
    else:
        filesystem.write_error, filesystem.failing_suffix = errno.ENOSPC, ".index"
    with pytest.raises(LogOffline):
        await log.flush()
    assert log.recovery_point == 0
    assert isinstance(append(log).error, LogOffline)
    assert not log.needs_flush


async def test_snapshot_of_the_producers_is_at_the_recovery_point(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem)
    sequenced(log, 0, 4)
    await log.flush()
    (entry,) = decode_snapshot(bytes(filesystem.files[f"{DIRECTORY}/{4:020d}.snapshot"]))
    assert (entry.producer_id, entry.last_sequence, entry.last_offset, entry.offset_delta) == (9, 3, 3, 3)


async def test_without_producers_there_is_no_snapshot(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem)
    append(log)
    await log.flush()
    assert snapshots(filesystem) == []


async def test_unchanged_producers_only_get_a_new_name(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem)
    sequenced(log, 0)
    await log.flush()
    append(log, 5)
    await log.flush()
    assert snapshots(filesystem) == [6]


async def test_two_snapshots_are_kept(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem)
    for sequence in range(4):
        sequenced(log, sequence)
        await log.flush()
    assert snapshots(filesystem) == [3, 4]


async def test_snapshot_of_a_roll_is_written_with_the_next_flush(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, config=LogConfig(segment_bytes=200))
    for sequence in range(3):
        sequenced(log, sequence)
    assert log.segment_count == 2
    await log.flush()
    assert snapshots(filesystem) == [2, 3]


async def test_snapshot_of_expired_producers_is_empty(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, storage=small_storage(producer_id_expiration_ms=1000))
    sequenced(log, 0)
    await log.flush()
    for now_ms in (0, 1000):
        log.expire_producers(now_ms)
    append(log)
    await log.flush()
    assert decode_snapshot(bytes(filesystem.files[f"{DIRECTORY}/{2:020d}.snapshot"])) == []
    assert outcomes([sequenced(log, 7)]) == [(2, 2)]


async def test_leader_epochs_reach_their_checkpoint(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, leader_epoch=2)
    append(log, 3)
    log.leader_epoch = 3
    append(log)
    await log.flush()
    checkpoint = bytes(filesystem.files[f"{DIRECTORY}/leader-epoch-checkpoint"])
    assert LeaderEpochs.decode(checkpoint).entries == [(2, 0), (3, 3)]


async def test_flush_is_asked_for_at_its_size_and_at_a_roll(filesystem: MemoryFileSystem) -> None:
    asked: list[str] = []
    log = await open_log(
        filesystem,
        config=LogConfig(segment_bytes=1000),
        storage=small_storage(flush_bytes=300),
        on_flush_due=lambda: asked.append("now"),
    )
    counts: list[int] = []
    for number in range(16):
        append(log)
        counts.append(len(asked))
        if number == 5:
            await log.flush()
    assert counts == [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3]


OUTLIVING = LogConfig(outlives_full_disk=True, index_interval_bytes=100)


@pytest.mark.parametrize(
    ("failure", "suffix"),
    [
        ("write_error", ".index"),
        ("write_error", ".shareindex"),
        ("sync_error", ".timeindex"),
        ("write_error", "leader-epoch-checkpoint.tmp"),
        ("write_error", ".snapshot.tmp"),
    ],
)
async def test_a_log_that_outlives_a_full_disk_repeats_writes_that_found_no_room(
    filesystem: MemoryFileSystem, failure: str, suffix: str
) -> None:
    log = await open_log(filesystem, config=OUTLIVING, leader_epoch=3)
    for sequence in range(5):
        sequenced(log, sequence)
        append_deltas(log)
    setattr(filesystem, failure, errno.ENOSPC)
    filesystem.failing_suffix, filesystem.written_before_error = suffix, 7
    for _ in range(2):
        with pytest.raises(DiskFull):
            await log.flush()
    assert (log.offline, log.recovery_point, log.needs_flush) == (None, 0, True)
    assert outcomes([sequenced(log, 5)]) == [(10, 10)]
    setattr(filesystem, failure, None)
    await log.flush()
    assert (log.recovery_point, log.needs_flush) == (11, False)
    left = filesystem.after_power_loss()
    content = {path: bytes(data) for path, data in left.files.items() if "snapshot" not in path}
    again = await open_log(left, config=OUTLIVING, recovery_point=11)
    assert content == {path: bytes(left.files[path]) for path in content}, "recovery finds nothing to mend"
    assert again.leader_epoch_at(0) == 3
    assert outcomes([sequenced(again, 5)]) == [(10, 10)]


async def test_records_that_found_no_room_at_their_sync_take_any_log_offline(
    filesystem: MemoryFileSystem,
) -> None:
    log = await open_log(filesystem, config=OUTLIVING)
    append(log)
    filesystem.sync_error, filesystem.failing_suffix = errno.ENOSPC, ".log"
    with pytest.raises(LogOffline):
        await log.flush()


async def test_other_logs_go_offline_if_an_index_finds_no_room(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem)
    append_deltas(log)
    filesystem.write_error, filesystem.failing_suffix = errno.ENOSPC, "index"
    with pytest.raises(LogOffline):
        await log.flush()


async def test_a_roll_that_finds_no_room_is_outlived(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, config=OUTLIVING)
    append(log)
    filesystem.create_error, filesystem.failing_suffix = errno.ENOSPC, ".timeindex"
    with pytest.raises(DiskFull):
        log.roll_if_due(NOW_MS + log.config.segment_ms + 1)
    filesystem.create_error = None
    assert log.roll_if_due(NOW_MS + log.config.segment_ms + 1)
    assert outcomes([append(log)]) == [(1, 1)]


async def test_the_next_flush_completes_a_cancelled_one(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem)
    sequenced(log, 0)
    await log.flush()
    sequenced(log, 1)
    filesystem.hold()
    flushing = asyncio.create_task(log.flush())
    await asyncio.sleep(0)
    flushing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await flushing
    filesystem.release()
    await log.flush()
    (entry,) = decode_snapshot(bytes(filesystem.files[f"{DIRECTORY}/{2:020d}.snapshot"]))
    assert entry.last_sequence == 1


async def test_producers_are_encoded_in_a_thread(
    filesystem: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = await open_log(filesystem, config=LogConfig(segment_bytes=200))
    filesystem.hold()
    for sequence in range(3):
        sequenced(log, sequence)
    encoded: list[int] = []

    def noted(entries: Sequence[ProducerSnapshotEntry]) -> bytes:
        encoded.append(entries[0].last_sequence)
        return encode_snapshot(entries)

    monkeypatch.setattr(producer_snapshots, "encode_snapshot", noted)
    flushing = asyncio.create_task(log.flush())
    for _ in range(5):
        await asyncio.sleep(0)
    sequenced(log, 3)
    assert encoded == []
    filesystem.release()
    await flushing
    assert (encoded, snapshots(filesystem)) == ([1, 2], [2, 3])


async def test_clean_close_leaves_nothing_to_recover(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem)
    append(log, 3)
    await log.close()
    assert log.recovery_point == 3
    assert filesystem.open_count == 0
    reopened = await open_log(filesystem, recovery_point=3)
    assert (reopened.needs_flush, reopened.recovery_point) == (False, 3)


async def test_a_recovery_point_beyond_the_end_does_not_cover_later_appends(
    filesystem: MemoryFileSystem,
) -> None:
    log = await open_log(filesystem)
    append(log, 3)
    reopened = await open_log(filesystem, recovery_point=10)
    assert reopened.recovery_point == 3
    append(reopened, 2)
    assert reopened.needs_flush


async def test_clean_log_is_opened_without_a_write(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, config=LogConfig(index_interval_bytes=50))
    for number in range(5):
        append(log, timestamp_ms=number + 5)
        append_deltas(log)
    await log.close()
    before = filesystem.copy().files
    reopened = await open_log(filesystem, config=LogConfig(index_interval_bytes=50), recovery_point=10)
    assert filesystem.files == before
    assert not reopened.needs_flush
