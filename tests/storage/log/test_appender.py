"""The append domain of a log: order, groups, threads, failures and listeners."""

import asyncio
import errno
from contextlib import suppress
from functools import partial

import pytest
from structlog.typing import EventDict

from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.storage.errors import AppendQueueFull, DiskFull, LogOffline, StorageError
from barnabas.storage.log.appended import Append
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import FlushPolicy, LogConfig
from tests.storage.log_building import (
    DIRECTORY,
    append,
    append_control,
    append_deltas,
    base_offsets_read,
    delta_batch,
    open_log,
    outcomes,
    recorder,
    sequenced,
    small_storage,
)
from tests.storage.memory_filesystem import MemoryFile, MemoryFileSystem

LOG_FILE = f"{DIRECTORY}/{0:020d}.log"
MS = 1_000_000


@pytest.fixture
def filesystem() -> MemoryFileSystem:
    return MemoryFileSystem()


async def settled(appends: list[Append]) -> None:
    for appended in appends:
        with suppress(StorageError, ApiError):
            await appended


async def test_small_append_is_complete_before_it_is_returned(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem)
    runs_before = filesystem.run_count
    appends = [append(log, 3), append(log, 2), append_deltas(log)]
    assert outcomes(appends) == [(0, 2), (3, 4), (5, 5)]
    assert filesystem.run_count == runs_before


async def test_large_append_is_written_in_a_thread(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, storage=small_storage(append_inline_bytes_max=90))
    appended = append(log, 3)
    assert not appended.done
    await appended
    assert (appended.result().base_offset, appended.result().last_offset) == (0, 2)


async def test_appends_that_wait_for_a_write_share_the_next_one(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, storage=small_storage(append_inline_bytes_max=90))
    filesystem.hold()
    appends = [append(log, 3)]
    await asyncio.sleep(0)
    appends += [append(log), append_deltas(log, 2), append(log, 2)]
    writes_before = filesystem.write_count
    filesystem.release()
    await settled(appends)
    assert outcomes(appends) == [(0, 2), (3, 3), (4, 5), (6, 7)]
    assert filesystem.write_count == writes_before + 2
    assert base_offsets_read(log) == [0, 3, 6]


async def test_nothing_is_visible_before_it_is_written(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, storage=small_storage(append_inline_bytes_max=90))
    filesystem.hold()
    appended = append(log, 3)
    await asyncio.sleep(0)
    assert (log.log_end_offset, log.high_watermark, log.size_bytes) == (0, 0, 0)
    filesystem.release()
    await appended
    assert (log.log_end_offset, log.high_watermark) == (3, 3)


async def test_group_ends_at_its_bound(filesystem: MemoryFileSystem) -> None:
    storage = small_storage(append_inline_bytes_max=90, append_group_bytes_max=500)
    log = await open_log(filesystem, storage=storage)
    filesystem.hold()
    appends = [append(log, value=b"x" * 150)]
    await asyncio.sleep(0)
    appends += [append(log, value=b"x" * 150) for _ in range(4)]
    writes_before = filesystem.write_count
    filesystem.release()
    await settled(appends)
    assert filesystem.write_count == writes_before + 3
    assert [appended.result().base_offset for appended in appends] == [0, 1, 2, 3, 4]


async def test_append_beyond_the_queues_bound_fails(filesystem: MemoryFileSystem) -> None:
    storage = small_storage(append_inline_bytes_max=1, append_queue_bytes_max=200)
    log = await open_log(filesystem, storage=storage)
    filesystem.hold()
    appends = [append(log)]
    await asyncio.sleep(0)
    appends += [append(log), append(log), append(log)]
    filesystem.release()
    await settled(appends)
    assert outcomes(appends) == [(0, 0), (1, 1), (2, 2), AppendQueueFull]


async def test_appends_that_failed_on_a_full_disk_take_no_room_in_the_queue(
    filesystem: MemoryFileSystem,
) -> None:
    storage = small_storage(append_inline_bytes_max=1, append_queue_bytes_max=200)
    log = await open_log(filesystem, storage=storage, config=LogConfig(outlives_full_disk=True))
    for error, outcome in ((errno.ENOSPC, [DiskFull] * 3), (None, [(0, 0), (1, 1), (2, 2)])):
        filesystem.write_error = error
        filesystem.hold()
        appends = [append(log)]
        await asyncio.sleep(0)
        appends += [append(log), append(log)]
        filesystem.release()
        await settled(appends)
        assert outcomes(appends) == outcome


async def test_after_a_slow_write_the_next_goes_to_a_thread(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, storage=small_storage(append_slow_ms=10))
    filesystem.write_ns = 11 * MS
    assert append(log).done
    filesystem.write_ns = 1 * MS
    appended = append(log)
    assert not appended.done
    await appended
    assert append(log).done
    assert log.slow_write_count == 1


async def test_append_of_a_listener_is_written_after_it_returns(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, storage=small_storage(append_inline_bytes_max=90))
    again: list[tuple[Append, bool]] = []

    def append_again(_: Append) -> None:
        appended = append(log)
        again.append((appended, appended.done))

    first = append(log, 3)
    first.when_done(append_again)
    await first
    ((second, was_done),) = again
    await second
    assert (was_done, second.result().base_offset) == (False, 3)


async def test_listener_that_appends_does_not_interrupt_the_running_one(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem)
    states: list[tuple[bool, int]] = []

    def listen(changed: PartitionLog) -> None:
        if changed.log_end_offset < 3:
            appended = append(changed)
            states.append((appended.done, changed.log_end_offset))

    log.when_moved(partial(listen, log))
    append(log)
    assert states == [(False, 1), (False, 2)]
    assert log.log_end_offset == 3


async def test_order_is_state_then_appends_then_listeners(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, storage=small_storage(append_inline_bytes_max=1))
    order: list[str] = []
    log.when_moved(partial(recorder(order, "listener"), log))
    appended = append(log)
    appended.when_done(lambda _: order.append(f"appended at {log.high_watermark}"))
    await appended
    assert order == ["appended at 1", "listener"]


async def test_listeners_are_not_called_for_share_state(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem)
    append(log)
    heard: list[str] = []
    log.when_moved(partial(recorder(heard, "moved"), log))
    append_deltas(log)
    assert heard == []
    assert (log.high_watermark, log.log_end_offset) == (1, 2)


@pytest.mark.parametrize("written_bytes", [0, 1, 61, 70, 10_000])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
async def test_failed_write_takes_the_log_offline_and_leaves_nothing_behind(
    filesystem: MemoryFileSystem, written_bytes: int, code: int
) -> None:
    log = await open_log(filesystem)
    append(log)
    before = bytes(filesystem.files[LOG_FILE])
    filesystem.write_error, filesystem.written_before_error = code, written_bytes
    failed = append(log)
    filesystem.write_error = None
    assert isinstance(failed.error, LogOffline)
    assert failed.error.code is ErrorCode.kafka_storage_error
    assert bytes(filesystem.files[LOG_FILE]) == before
    assert isinstance(append(log).error, LogOffline)
    assert (log.log_end_offset, log.high_watermark) == (1, 1)


async def test_failed_write_in_a_thread_fails_the_appends_behind_it(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, storage=small_storage(append_inline_bytes_max=1))
    filesystem.hold()
    appends = [append(log)]
    await asyncio.sleep(0)
    appends += [append(log), append_deltas(log)]
    filesystem.write_error = errno.ENOSPC
    filesystem.release()
    await settled(appends)
    assert outcomes(appends) == [LogOffline] * 3


async def test_partial_write_that_cannot_be_cut_is_cut_by_recovery(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem)
    append(log)
    filesystem.write_error = filesystem.truncate_error = errno.EIO
    filesystem.written_before_error = 30
    assert isinstance(append(log).error, LogOffline)
    filesystem.write_error = filesystem.truncate_error = None
    await log.close(clean=False)
    log = await open_log(filesystem)
    assert base_offsets_read(log) == [0]
    assert append(log).result().base_offset == 1


async def test_encoders_exception_fails_its_own_append_and_is_logged(
    filesystem: MemoryFileSystem, log_lines: list[EventDict]
) -> None:
    log = await open_log(filesystem)

    def fail(_base_offset: int, _leader_epoch: int) -> list[object]:
        raise ZeroDivisionError

    assert isinstance(append_control(log, fail, 0).error, ZeroDivisionError)  # type: ignore[arg-type]
    (line,) = log_lines
    assert (line["event"], line["log"]) == ("an append could not be encoded", "orders-0")
    assert isinstance(line["exc_info"], ZeroDivisionError)
    assert append(log).result().base_offset == 0


async def test_encoder_is_called_in_turn_with_the_offset_it_gets(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, storage=small_storage(append_inline_bytes_max=90), leader_epoch=4)
    calls: list[tuple[int, int]] = []

    def encode(base_offset: int, leader_epoch: int) -> list[object]:
        calls.append((base_offset, leader_epoch))
        return [delta_batch(base_offset, leader_epoch)]

    filesystem.hold()
    append(log, 5)
    await asyncio.sleep(0)
    waiting = append_control(log, encode, 0)  # type: ignore[arg-type]
    assert calls == []
    filesystem.release()
    await waiting
    assert calls == [(5, 4)]


async def test_flush_always_syncs_before_an_append_is_done(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, storage=small_storage(flush=FlushPolicy.ALWAYS))
    appended = append(log)
    assert not appended.done
    await appended
    assert filesystem.synced[LOG_FILE] == bytes(filesystem.files[LOG_FILE]) != b""


async def test_flush_always_shares_the_sync(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, storage=small_storage(flush=FlushPolicy.ALWAYS))
    filesystem.hold()
    appends = [append(log)]
    await asyncio.sleep(0)
    appends += [append(log) for _ in range(10)]
    syncs_before = filesystem.sync_count
    filesystem.release()
    await settled(appends)
    assert filesystem.sync_count == syncs_before + 2


async def test_failed_sync_fences_the_log_and_is_not_tried_again(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, storage=small_storage(flush=FlushPolicy.ALWAYS))
    filesystem.sync_error = errno.EIO
    appended = append(log)
    with pytest.raises(LogOffline):
        await appended
    filesystem.sync_error = None
    assert isinstance(append(log).error, LogOffline)
    with pytest.raises(LogOffline):
        await log.flush()
    assert log.high_watermark == 0


async def test_failed_sync_on_a_full_disk_fences_a_log_that_outlives_it(filesystem: MemoryFileSystem) -> None:
    storage, config = small_storage(flush=FlushPolicy.ALWAYS), LogConfig(outlives_full_disk=True)
    log = await open_log(filesystem, storage=storage, config=config)
    filesystem.sync_error = errno.ENOSPC
    appended = append(log)
    with pytest.raises(LogOffline):
        await appended


async def test_repeated_batch_in_the_same_group_is_appended_once(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, storage=small_storage(append_inline_bytes_max=1))
    filesystem.hold()
    appends = [sequenced(log, 0, 2)]
    await asyncio.sleep(0)
    appends += [sequenced(log, 2), sequenced(log, 2), sequenced(log, 3), sequenced(log, 9)]
    filesystem.release()
    await settled(appends)
    assert outcomes(appends) == [(0, 1), (2, 2), (2, 2), (3, 3), ApiError]
    assert base_offsets_read(log) == [0, 2, 3]


async def test_repeated_batch_that_fails_with_the_first_one_fails_too(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, storage=small_storage(append_inline_bytes_max=1))
    filesystem.hold()
    appends = [append(log)]
    await asyncio.sleep(0)
    appends += [sequenced(log, 0), sequenced(log, 0)]
    filesystem.write_error = errno.EIO
    filesystem.release()
    await settled(appends)
    assert outcomes(appends) == [LogOffline] * 3


async def test_unclean_close_fails_waiting_appends_and_finishes_the_write(
    filesystem: MemoryFileSystem,
) -> None:
    log = await open_log(filesystem, storage=small_storage(append_inline_bytes_max=1))
    filesystem.hold()
    appends = [append(log)]
    await asyncio.sleep(0)
    appends.append(append(log))
    closing = asyncio.create_task(log.close(clean=False))
    await asyncio.sleep(0)
    assert appends[1].done
    filesystem.release()
    await closing
    assert appends[0].error is None
    assert filesystem.open_count == 0


def refuse(_: object) -> None:
    raise ZeroDivisionError


def errors_logged(log_lines: list[EventDict]) -> list[type]:
    """The type of the exception in each line; NoneType for a line without one."""
    return [type(line.get("exc_info")) for line in log_lines]


@pytest.mark.parametrize("inline_bytes_max", [1, 10_000])
async def test_failing_listener_of_an_append_delays_no_other(
    filesystem: MemoryFileSystem, inline_bytes_max: int, log_lines: list[EventDict]
) -> None:
    storage = small_storage(append_inline_bytes_max=inline_bytes_max)
    log = await open_log(filesystem, storage=storage)
    appends: list[Append] = []

    def append_more(_: PartitionLog) -> None:
        if not appends:
            appends.extend([append(log), append(log), append(log)])
            appends[0].when_done(refuse)
            appends[1].when_done(refuse)

    log.when_moved(partial(append_more, log))
    await append(log)
    await settled(appends)
    appends.append(append(log, 3))
    await settled(appends)
    assert outcomes(appends) == [(1, 1), (2, 2), (3, 3), (4, 6)]
    assert [line["event"] for line in log_lines] == ["a listener of a completion failed"] * 2
    assert log.offline is None


@pytest.mark.parametrize("inline_bytes_max", [1, 10_000])
async def test_failing_listener_of_the_log_delays_no_append(
    filesystem: MemoryFileSystem, inline_bytes_max: int, log_lines: list[EventDict]
) -> None:
    storage = small_storage(append_inline_bytes_max=inline_bytes_max, flush_bytes=1)
    log = await open_log(filesystem, storage=storage, on_flush_due=lambda: refuse(None))
    log.when_moved(partial(refuse, log))
    appends = [append(log)]
    await appends[0]
    appends.append(append(log))
    await appends[1]
    assert outcomes(appends) == [(0, 0), (1, 1)]
    assert errors_logged(log_lines) == [ZeroDivisionError] * 3


@pytest.mark.parametrize("inline_bytes_max", [1, 10_000])
async def test_write_that_fails_by_a_bug_takes_the_log_offline(
    filesystem: MemoryFileSystem,
    inline_bytes_max: int,
    monkeypatch: pytest.MonkeyPatch,
    log_lines: list[EventDict],
) -> None:
    log = await open_log(filesystem, storage=small_storage(append_inline_bytes_max=inline_bytes_max))
    append(log)
    await log.flush()

    def fail(_file: MemoryFile, buffers: object) -> None:
        refuse(buffers)

    monkeypatch.setattr(MemoryFile, "write", fail)
    await settled([failed := append(log), behind := append(log)])
    assert outcomes([failed, behind]) == [LogOffline] * 2
    assert errors_logged(log_lines) == [ZeroDivisionError]
