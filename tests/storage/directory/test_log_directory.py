"""The data directory: lock, opening, flushes, deletion, crashes and offline logs."""

import asyncio
import errno
from pathlib import Path
from traceback import extract_tb
from uuid import UUID

import pytest
from structlog.typing import EventDict

from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.errors import DirectoryLocked, InvalidDirectory, LogOffline, StorageError
from barnabas.storage.format.checkpoint_file import decode_offsets
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import FlushPolicy, LogConfig, StorageConfig
from barnabas.storage.topic_partition import TopicPartition
from tests.storage.log_building import (
    NOW_MS,
    TOPIC_ID,
    append,
    append_deltas,
    outcomes,
    sequenced,
    small_storage,
    values_read,
)
from tests.storage.memory_filesystem import MemoryFileSystem
from tests.storage.steady_filesystem import SteadyFileSystem

DAY_MS = 86_400_000

PATH = "/data"
RECOVERY_POINTS = f"{PATH}/recovery-point-offset-checkpoint"
OTHER_ID = UUID(int=99)


class Uuids:
    """Ids in ascending order."""

    def __init__(self) -> None:
        self.last = 1000

    def __call__(self) -> UUID:
        self.last += 1
        return UUID(int=self.last)


@pytest.fixture
def filesystem() -> MemoryFileSystem:
    return MemoryFileSystem()


async def open_directory(
    filesystem: MemoryFileSystem,
    *,
    node_id: int = 1,
    cluster_id: str | None = None,
    storage: StorageConfig | None = None,
) -> LogDirectory:
    return await LogDirectory.open(
        filesystem,
        PATH,
        node_id=node_id,
        wall_ms=lambda: NOW_MS,
        cluster_id=cluster_id,
        storage=storage,
        new_uuid=Uuids(),
    )


async def log_of(directory: LogDirectory, topic: str = "orders", partition: int = 0) -> PartitionLog:
    return await directory.log(topic, partition, TOPIC_ID, LogConfig())


def checkpoint(filesystem: MemoryFileSystem, name: str) -> dict[tuple[str, int], int]:
    return decode_offsets(bytes(filesystem.files[f"{PATH}/{name}"]))


def pass_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute."""
    loop = asyncio.get_running_loop()
    time = loop.time
    monkeypatch.setattr(loop, "time", lambda: time() + 60)


async def test_new_directory_says_whose_it_is(filesystem: MemoryFileSystem) -> None:
    directory = await open_directory(filesystem, node_id=3, cluster_id="castle")
    assert (directory.cluster_id, directory.node_id) == ("castle", 3)
    await directory.close()
    again = await open_directory(filesystem, node_id=3)
    assert (again.cluster_id, again.directory_id) == ("castle", directory.directory_id)


async def test_cluster_id_is_made_if_none_is_given(filesystem: MemoryFileSystem) -> None:
    assert (await open_directory(filesystem)).cluster_id == "AAAAAAAAAAAAAAAAAAAD6Q"


@pytest.mark.parametrize(("node_id", "cluster_id"), [(2, None), (1, "another")])
async def test_another_brokers_directory_is_refused_and_left_unlocked(
    filesystem: MemoryFileSystem, node_id: int, cluster_id: str | None
) -> None:
    await (await open_directory(filesystem)).close()
    with pytest.raises(InvalidDirectory):
        await open_directory(filesystem, node_id=node_id, cluster_id=cluster_id)
    await (await open_directory(filesystem)).close()


async def test_second_broker_is_refused(filesystem: MemoryFileSystem) -> None:
    await open_directory(filesystem)
    with pytest.raises(DirectoryLocked) as refused:
        await open_directory(filesystem)
    assert refused.value.pid == 4711


async def test_log_is_opened_once(filesystem: MemoryFileSystem) -> None:
    directory = await open_directory(filesystem)
    assert directory.find("orders", 0) is None
    first, second = await asyncio.gather(log_of(directory), log_of(directory))
    assert first is second is directory.find("orders", 0)
    assert await log_of(directory) is first
    assert await directory.partitions_on_disk() == [TopicPartition("orders", 0)]


async def test_opening_goes_on_although_the_first_to_ask_was_cancelled(filesystem: MemoryFileSystem) -> None:
    directory = await open_directory(filesystem)
    filesystem.hold()
    impatient = asyncio.create_task(log_of(directory))
    patient = asyncio.create_task(log_of(directory))
    await asyncio.sleep(0)
    impatient.cancel()
    filesystem.release()
    assert await patient is directory.find("orders", 0)


async def test_everything_is_there_again_after_a_clean_close(filesystem: MemoryFileSystem) -> None:
    directory = await open_directory(filesystem)
    directory.start()
    log = await log_of(directory)
    append(log, 5)
    sequenced(log, 0)
    append_deltas(log)
    log.delete_records(2)
    expected = values_read(log, 2)
    await directory.close()
    assert filesystem.open_count == 0
    assert f"{PATH}/.kafka_cleanshutdown" in filesystem.files
    key = ("orders", 0)
    assert checkpoint(filesystem, "recovery-point-offset-checkpoint") == {key: 7}
    assert checkpoint(filesystem, "log-start-offset-checkpoint") == {key: 2}
    assert checkpoint(filesystem, "replication-offset-checkpoint") == {key: 6}

    directory = await open_directory(filesystem)
    assert f"{PATH}/.kafka_cleanshutdown" not in filesystem.files
    log = await log_of(directory)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (2, 6, 7)
    assert values_read(log, 2) == expected
    assert outcomes([sequenced(log, 0)]) == [(5, 5)]


async def test_everything_is_there_again_after_a_crash(filesystem: MemoryFileSystem) -> None:
    directory = await open_directory(filesystem)
    log = await log_of(directory)
    append(log, 5)
    await directory.flush()
    append(log, 2)
    left = await open_directory(filesystem.copy())
    reopened = await log_of(left)
    assert values_read(reopened) == values_read(log)
    assert reopened.recovery_point == 5


async def test_real_directory_holds_everything_over_a_crash_and_a_close(tmp_path: Path) -> None:
    async def opened() -> LogDirectory:
        path = str(tmp_path / "data")
        directory = await LogDirectory.open(SteadyFileSystem(), path, node_id=1, wall_ms=lambda: NOW_MS)
        directory.start()
        return directory

    directory = await opened()
    log = await log_of(directory)
    append(log, 3)
    append_deltas(log)
    await directory.flush()
    append(log, 2)
    expected = values_read(log)
    await directory.close(clean=False)
    for _ in range(2):
        directory = await opened()
        log = await log_of(directory)
        assert (values_read(log), log.log_end_offset, log.high_watermark) == (expected, 6, 6)
        await directory.close()


async def test_logs_are_flushed_in_the_interval(filesystem: MemoryFileSystem) -> None:
    storage = small_storage(flush_interval_ms=1, recovery_point_interval_ms=1)
    directory = await open_directory(filesystem, storage=storage)
    directory.start()
    append(await log_of(directory), 4)
    await filesystem.replacement_of(RECOVERY_POINTS).wait()
    assert checkpoint(filesystem, "recovery-point-offset-checkpoint") == {("orders", 0): 4}
    await directory.close()


async def test_logs_are_flushed_earlier_at_their_size(filesystem: MemoryFileSystem) -> None:
    storage = small_storage(flush_interval_ms=10**8, flush_bytes=100)
    directory = await open_directory(filesystem, storage=storage)
    directory.start()
    log = await log_of(directory)
    append(log, 20)
    await filesystem.replacement_of(RECOVERY_POINTS).wait()
    assert log.durable_offset == 20
    await directory.close()


async def test_flush_never_waits_for_a_roll(filesystem: MemoryFileSystem) -> None:
    directory = await open_directory(filesystem, storage=small_storage(flush=FlushPolicy.NEVER))
    log = await directory.log("orders", 0, TOPIC_ID, LogConfig(segment_bytes=200))
    append(log)
    await directory.flush()
    assert log.recovery_point == 0
    append(log, 10)
    await directory.flush()
    assert log.recovery_point == 11


async def test_checkpoint_keeps_logs_that_are_not_open(filesystem: MemoryFileSystem) -> None:
    directory = await open_directory(filesystem)
    append(await log_of(directory, "orders"), 3)
    await directory.close()
    directory = await open_directory(filesystem)
    append(await log_of(directory, "bills"), 2)
    await directory.close()
    assert checkpoint(filesystem, "recovery-point-offset-checkpoint") == {("orders", 0): 3, ("bills", 0): 2}


@pytest.mark.parametrize("content", [b"garbage", b"0\n5\n", b"", b"9\n0\n"])
async def test_damaged_checkpoint_costs_a_longer_recovery_only(
    filesystem: MemoryFileSystem, content: bytes
) -> None:
    directory = await open_directory(filesystem)
    append(await log_of(directory), 3)
    await directory.close()
    filesystem.files[f"{PATH}/recovery-point-offset-checkpoint"] = bytearray(content)
    directory = await open_directory(filesystem)
    assert (await log_of(directory)).log_end_offset == 3


async def test_deleted_topic_is_gone_and_can_be_made_again(filesystem: MemoryFileSystem) -> None:
    directory = await open_directory(filesystem)
    for partition in (0, 1):
        append(await log_of(directory, "orders", partition), 3)
    append(await log_of(directory, "orders-2", 0), 1)
    await directory.delete_topic("orders")
    assert await directory.partitions_on_disk() == [TopicPartition("orders-2", 0)]
    assert not [name for name in filesystem.files if "-delete" in name]
    assert directory.find("orders", 0) is None
    log = await directory.log("orders", 0, OTHER_ID, LogConfig())
    assert (log.log_end_offset, log.topic_id) == (0, OTHER_ID)


async def test_deleted_log_fails_appends(filesystem: MemoryFileSystem) -> None:
    directory = await open_directory(filesystem)
    log = await log_of(directory)
    await directory.delete_topic("orders")
    assert isinstance(append(log).error, StorageError)


async def test_a_topic_that_is_deleted_during_a_flush_is_no_error(
    filesystem: MemoryFileSystem, log_lines: list[EventDict]
) -> None:
    directory = await open_directory(filesystem)
    for name in ("orders", "payments"):
        append(await log_of(directory, name))
    # The deletion comes first: the round has already taken the log as one that is due.
    flush = asyncio.create_task(directory.flush())
    await asyncio.gather(directory.delete_topic("orders"), flush)
    assert not log_lines
    assert (await log_of(directory, "payments")).recovery_point == 1


async def test_deletion_that_a_crash_interrupted_is_finished(filesystem: MemoryFileSystem) -> None:
    directory = await open_directory(filesystem)
    append(await log_of(directory))
    await directory.close()
    filesystem.rename(f"{PATH}/orders-0", f"{PATH}/orders-0.abc-delete")
    directory = await open_directory(filesystem)
    directory.start()
    await directory.close()
    assert not [name for name in filesystem.files if "orders" in name]


async def test_logs_that_are_made_together_share_the_sync_of_their_names(
    filesystem: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = await open_directory(filesystem)
    synced: list[str] = []
    monkeypatch.setattr(filesystem, "sync_directory", synced.append)
    await asyncio.gather(*(log_of(directory, "orders", index) for index in range(20)))
    assert synced == [PATH]
    await log_of(directory, "orders", 3)
    assert synced == [PATH]


async def test_a_log_whose_name_is_not_durable_is_not_used(
    filesystem: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = await open_directory(filesystem, storage=small_storage(reopen_backoff_ms=0))
    filesystem.sync_error, filesystem.failing_suffix = errno.EIO, PATH
    with pytest.raises(LogOffline):
        await log_of(directory)
    assert directory.find("orders", 0) is None
    assert filesystem.open_count == 0
    filesystem.sync_error = None
    synced: list[str] = []
    monkeypatch.setattr(filesystem, "sync_directory", synced.append)
    await log_of(directory)
    assert synced == [PATH]


async def test_a_directory_with_another_topic_id_is_refused_and_left_where_it_is(
    filesystem: MemoryFileSystem,
) -> None:
    """A changed byte in the file must not empty a partition."""
    directory = await open_directory(filesystem, storage=small_storage(reopen_backoff_ms=0))
    append(await log_of(directory), 3)
    await directory.close()
    path = f"{PATH}/orders-0/partition.metadata"
    content = bytes(filesystem.files[path])
    filesystem.files[path][25] ^= 3
    directory = await open_directory(filesystem, storage=small_storage(reopen_backoff_ms=0))
    with pytest.raises(
        LogOffline, match=r"partition\.metadata .*barnabas log restore-topic-id /data/orders-0"
    ):
        await log_of(directory)
    assert await directory.partitions_on_disk() == [TopicPartition("orders", 0)]
    filesystem.files[path][:] = content
    assert len(values_read(await log_of(directory))) == 3


async def test_an_unreadable_topic_id_is_written_again_with_a_warning(
    filesystem: MemoryFileSystem, log_lines: list[EventDict]
) -> None:
    directory = await open_directory(filesystem)
    append(await log_of(directory), 3)
    await directory.close()
    path = f"{PATH}/orders-0/partition.metadata"
    content = bytes(filesystem.files[path])
    for damaged in (b"", content[:20], b"version: 0"):
        filesystem.files[path][:] = damaged
        directory = await open_directory(filesystem)
        assert len(values_read(await log_of(directory))) == 3
        await directory.close()
        assert bytes(filesystem.files[path]) == content
    assert [line["path"] for line in log_lines] == [path] * 3


async def test_logs_of_a_deleted_topic_that_could_not_be_removed_make_way_for_a_new_one(
    filesystem: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: str, __: str) -> None:
        raise OSError(errno.EIO, "the disk says no")

    directory = await open_directory(filesystem, storage=small_storage(reopen_backoff_ms=0))
    append(await log_of(directory), 3)
    with monkeypatch.context() as broken:
        broken.setattr(filesystem, "rename", refuse)
        with pytest.raises(OSError, match="the disk says no"):
            await directory.delete_topic("orders")
        with pytest.raises(LogOffline, match="the disk says no"):
            await directory.log("orders", 0, OTHER_ID, LogConfig())
    log = await directory.log("orders", 0, OTHER_ID, LogConfig())
    assert (log.log_end_offset, log.topic_id) == (0, OTHER_ID)


async def test_offline_log_is_opened_again_after_the_backoff(
    filesystem: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = await open_directory(filesystem, storage=small_storage(reopen_backoff_ms=60_000))
    log = await log_of(directory)
    append(log, 2)
    filesystem.write_error = errno.ENOSPC
    assert append(log).error is not None
    filesystem.write_error = None
    assert directory.find("orders", 0) is None
    with pytest.raises(LogOffline):
        await log_of(directory)
    pass_time(monkeypatch)
    again = await log_of(directory)
    assert again is not log
    assert append(again).result().base_offset == 2
    assert len(values_read(again)) == 3


async def test_a_log_start_that_was_confirmed_holds_when_the_log_is_opened_again(
    filesystem: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = await open_directory(filesystem, storage=small_storage(reopen_backoff_ms=60_000))
    log = await log_of(directory)
    append(log, 5)
    assert log.delete_records(3) == 3
    filesystem.write_error = errno.ENOSPC
    assert append(log).error is not None
    filesystem.write_error = None
    with pytest.raises(LogOffline):
        await log_of(directory)
    pass_time(monkeypatch)
    assert (await log_of(directory)).log_start_offset == 3


async def test_log_that_cannot_be_opened_is_refused_until_the_backoff_is_over(
    filesystem: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = await open_directory(filesystem, storage=small_storage(reopen_backoff_ms=60_000))
    append(await log_of(directory))
    await directory.close()
    directory = await open_directory(filesystem, storage=small_storage(reopen_backoff_ms=60_000))
    filesystem.read_error = errno.EIO
    for _ in range(2):
        with pytest.raises(LogOffline):
            await log_of(directory)
    filesystem.read_error = None
    pass_time(monkeypatch)
    assert (await log_of(directory)).log_end_offset == 1


@pytest.mark.parametrize("is_open", [True, False])
async def test_each_refusal_is_an_error_of_its_own(filesystem: MemoryFileSystem, is_open: bool) -> None:
    directory = await open_directory(filesystem, storage=small_storage(reopen_backoff_ms=60_000))
    if is_open:
        log = await log_of(directory)
        filesystem.write_error = errno.EIO
        assert append(log).error is not None
    else:
        filesystem.create_error = errno.EIO
    refusals: list[LogOffline] = []
    for _ in range(3):
        with pytest.raises(LogOffline) as refused:
            await log_of(directory)
        refusals.append(refused.value)
    assert len(set(map(id, refusals))) == 3
    assert len({str(refusal) for refusal in refusals}) == 1
    assert len({id(refusal.__cause__) for refusal in refusals}) == 1
    assert isinstance(refusals[0].__cause__, OSError)
    assert len({len(extract_tb(refusal.__traceback__)) for refusal in refusals[1:]}) == 1


async def test_one_log_that_fails_does_not_keep_the_others_from_their_flush(
    filesystem: MemoryFileSystem,
) -> None:
    directory = await open_directory(filesystem)
    bad, good = await log_of(directory, "bad"), await log_of(directory, "good")
    append(bad)
    append(good)
    filesystem.sync_error = errno.EIO
    with pytest.raises(StorageError):
        await bad.flush()
    filesystem.sync_error = None
    await directory.flush()
    assert (bad.recovery_point, good.recovery_point) == (0, 1)
    await directory.close()
    assert f"{PATH}/.kafka_cleanshutdown" not in filesystem.files


async def test_expired_segments_are_removed_by_the_retention_check(filesystem: MemoryFileSystem) -> None:
    directory = await open_directory(filesystem)
    config = LogConfig(segment_bytes=200, retention_bytes=400)
    log = await directory.log("orders", 0, TOPIC_ID, config)
    for _ in range(10):
        append(log)
    await directory.retain()
    assert log.size_bytes <= 600
    assert log.log_start_offset > 0


@pytest.mark.parametrize("shift_ms", [-DAY_MS, DAY_MS])
async def test_setting_the_wall_clock_forgets_no_producer_and_keeps_none_longer(
    filesystem: MemoryFileSystem, shift_ms: int
) -> None:
    clock = ShiftedClock()
    storage = small_storage(producer_id_expiration_ms=DAY_MS)
    directory = await LogDirectory.open(
        filesystem, PATH, node_id=1, wall_ms=clock.wall_ms, now_ms=lambda: clock.now_ms, storage=storage
    )
    log = await log_of(directory, "orders")
    sequenced(log, 0)
    await directory.retain()
    clock.shift_ms = shift_ms
    clock.now_ms += DAY_MS - 1
    await directory.retain()
    assert len(list(log.active_producers())) == 1
    clock.now_ms += 1
    await directory.retain()
    assert len(list(log.active_producers())) == 0
    await directory.close()


class ShiftedClock:
    """Stands still until it is moved; the wall clock may be set."""

    def __init__(self) -> None:
        self.now_ms = self.shift_ms = 0

    def wall_ms(self) -> int:
        return NOW_MS + self.now_ms + self.shift_ms


async def test_maintenance_runs_retention_and_writes_all_checkpoints(filesystem: MemoryFileSystem) -> None:
    storage = small_storage(flush_interval_ms=1, retention_check_interval_ms=1)
    directory = await open_directory(filesystem, storage=storage)
    log = await directory.log("orders", 0, TOPIC_ID, LogConfig(segment_bytes=200, retention_bytes=400))
    for _ in range(10):
        append(log)
    directory.start()
    await filesystem.replacement_of(f"{PATH}/replication-offset-checkpoint").wait()
    assert log.log_start_offset > 0
    await directory.close()


async def test_logs_use_the_directorys_leader_epoch(filesystem: MemoryFileSystem) -> None:
    directory = await open_directory(filesystem)
    directory.leader_epoch = 6
    log = await log_of(directory)
    assert log.leader_epoch == 6
    other = await directory.log("meta", 0, TOPIC_ID, LogConfig(), leader_epoch=2)
    assert other.leader_epoch == 2


async def test_unclean_close_flushes_nothing(filesystem: MemoryFileSystem) -> None:
    directory = await open_directory(filesystem)
    append(await log_of(directory))
    await directory.close(clean=False)
    assert "recovery-point-offset-checkpoint" not in str(list(filesystem.files))
    assert filesystem.locks == set()


@pytest.mark.parametrize("offset", [3, 50])
async def test_a_log_that_starts_over_begins_and_ends_at_the_given_offset(
    filesystem: MemoryFileSystem, offset: int
) -> None:
    directory = await open_directory(filesystem)
    log = await directory.log("t", 0, TOPIC_ID, LogConfig(segment_bytes=200))
    for _ in range(10):
        append(log, 1)
    await directory.flush()
    again = await directory.start_over("t", 0, TOPIC_ID, LogConfig(), offset=offset)
    assert (again.log_start_offset, again.log_end_offset, again.segment_count) == (offset, offset, 1)
    assert directory.find("t", 0) is again
    left = filesystem.copy()
    append(again, 2)
    assert [found for found, _ in values_read(again, offset)] == [offset, offset + 1]
    await directory.close()
    for disk, end_offset in ((filesystem, offset + 2), (left, offset)):
        directory = await open_directory(disk)
        found = await directory.log("t", 0, TOPIC_ID, LogConfig())
        assert (found.log_start_offset, found.log_end_offset) == (offset, end_offset)
        await directory.close(clean=False)


async def test_a_topic_made_again_is_not_taken_for_the_one_that_was_deleted(
    filesystem: MemoryFileSystem,
) -> None:
    """Its log start and recovery point were in the checkpoints."""
    storage = small_storage(flush=FlushPolicy.ALWAYS)
    directory = await open_directory(filesystem, storage=storage)
    log = await directory.log("orders", 0, TOPIC_ID, LogConfig())
    for _ in range(10):
        await append(log)
    log.delete_records(8)
    await directory.flush()
    await directory.delete_topic("orders")
    log = await directory.log("orders", 0, OTHER_ID, LogConfig())
    for _ in range(3):
        await append(log)
    for left in (filesystem.copy(), filesystem.after_power_loss()):
        directory = await open_directory(left, storage=storage)
        again = await directory.log("orders", 0, OTHER_ID, LogConfig())
        assert (again.log_start_offset, again.log_end_offset) == (0, 3)
