"""The metadata on disk: when snapshots are taken, how the log start follows, and the result of a start."""

from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest
from structlog.typing import EventDict

from barnabas.coordinator.metadata.config_decisions import ResourceChange, SettingChange
from barnabas.coordinator.metadata.controller import Controller
from barnabas.coordinator.metadata.followers import FOLLOWER_SESSION_MS, FollowerKey
from barnabas.coordinator.metadata.image import ConfigResource, ResourceType
from barnabas.coordinator.metadata.metadata_log import LOG_START_CHECK_MS
from barnabas.coordinator.metadata.snapshot import SnapshotId, parse_snapshot_name
from barnabas.coordinator.metadata.snapshot_schedule import RETRY_MS
from barnabas.coordinator.metadata.snapshot_settings import SnapshotSettings
from barnabas.coordinator.metadata.topic_decisions import NewTopic
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.storage.errors import InvalidDirectory
from tests.coordinator.metadata.metadata_fakes import HandClock, MemoryLog, controller_over, settle
from tests.storage.memory_filesystem import MemoryFileSystem

DIRECTORY = "/__cluster_metadata-0"
DAY_MS = 86_400_000
FOLLOWER = FollowerKey(2, UUID(int=7))
NOW_AND_THEN = SnapshotSettings(record_bytes=1_000, cleanable_ratio=0)


@pytest.fixture
def disk() -> MemoryFileSystem:
    return empty_disk()


def empty_disk() -> MemoryFileSystem:
    made = MemoryFileSystem()
    made.make_directory(DIRECTORY)
    return made


def path_of(snapshot_id: SnapshotId) -> str:
    return f"{DIRECTORY}/{snapshot_id.file_name}"


def snapshots(disk: MemoryFileSystem) -> list[SnapshotId]:
    found = filter(None, map(parse_snapshot_name, disk.list_directory(DIRECTORY)))
    return sorted(found, key=lambda snapshot_id: snapshot_id.age)


async def started(
    store: MemoryLog,
    disk: MemoryFileSystem,
    settings: SnapshotSettings | None = None,
    clock: HandClock | None = None,
) -> Controller:
    controller = controller_over(store, Path(DIRECTORY), settings, clock, filesystem=disk)
    await controller.start()
    return controller


async def closed_with_topics(store: MemoryLog, disk: MemoryFileSystem, *names: str) -> None:
    controller = await started(store, disk)
    await controller.create_topics([NewTopic(name, 1) for name in names])
    await controller.close()


async def topics_after_start(store: MemoryLog, disk: MemoryFileSystem) -> set[str]:
    return set((await started(store, disk)).image.topics_by_name)


async def set_retention(controller: Controller, topic: str, value: int) -> None:
    change = SettingChange("retention.ms", 0, str(value))
    await controller.alter_configs([ResourceChange(ConfigResource(ResourceType.TOPIC, topic), [change])])


# --- starts and closes ----------------------------------------------------------------------------


async def test_a_clean_close_leaves_a_snapshot_of_everything(disk: MemoryFileSystem) -> None:
    store = MemoryLog()
    await closed_with_topics(store, disk, "a")
    assert snapshots(disk) == [SnapshotId(store.log_end_offset, 0)]
    assert store.flush_count == 1


async def test_a_start_reads_the_snapshot_and_the_records_after_it(disk: MemoryFileSystem) -> None:
    store = MemoryLog()
    await closed_with_topics(store, disk, "a")
    controller = await started(store, disk)
    await controller.create_topics([NewTopic("b", 1)])
    assert await topics_after_start(store, disk) == {"a", "b"}


async def test_a_close_with_nothing_new_writes_nothing(disk: MemoryFileSystem) -> None:
    store = MemoryLog()
    controller = await started(store, disk)
    await controller.close()
    before = snapshots(disk)
    await controller.close()
    assert snapshots(disk) == before
    assert store.flush_count == 1


async def test_a_log_without_a_start_needs_no_snapshot(disk: MemoryFileSystem) -> None:
    store = MemoryLog()
    await closed_with_topics(store, disk, "a")
    disk.files.clear()
    assert store.log_start_offset == 0
    assert await topics_after_start(store, disk) == {"a"}


async def test_a_spoilt_snapshot_is_made_up_for_by_the_one_before(disk: MemoryFileSystem) -> None:
    store = MemoryLog()
    for name in ("a", "b", "c"):
        await closed_with_topics(store, disk, name)
    del disk.files[path_of(snapshots(disk)[-1])][-1:]
    assert await topics_after_start(store, disk) == {"a", "b", "c"}


async def test_a_log_that_begins_behind_its_snapshots_stops_the_start(disk: MemoryFileSystem) -> None:
    store = MemoryLog()
    for name in ("a", "b", "c"):
        await closed_with_topics(store, disk, name)
    for snapshot_id in snapshots(disk):
        disk.remove(path_of(snapshot_id))
    with pytest.raises(InvalidDirectory, match=r"the newest is none that can be read\. Put the missing"):
        await topics_after_start(store, disk)


async def test_a_snapshot_below_the_log_start_is_not_enough(disk: MemoryFileSystem) -> None:
    store = MemoryLog()
    await closed_with_topics(store, disk, "a")
    (only,) = snapshots(disk)
    await closed_with_topics(store, disk, "b")
    disk.remove(path_of(snapshots(disk)[-1]))
    store.delete_records(store.log_end_offset)
    with pytest.raises(InvalidDirectory, match=only.file_name):
        await topics_after_start(store, disk)


# --- the end of the log is lost -------------------------------------------------------------------


async def test_a_log_that_lost_its_tail_starts_over_at_its_snapshot(
    disk: MemoryFileSystem, log_lines: list[EventDict]
) -> None:
    store = MemoryLog()
    await closed_with_topics(store, disk, "a", "b")
    (snapshot_id,) = snapshots(disk)
    del store.batches[1:]
    controller = await started(store, disk)
    assert set(controller.image.topics_by_name) == {"a", "b"}
    assert store.log_start_offset == snapshot_id.end_offset
    (line,) = log_lines
    assert "starts over" in line["event"]
    assert (line["directory"], line["snapshot"]) == (DIRECTORY, snapshot_id.file_name)
    await controller.create_topics([NewTopic("c", 1)])
    assert await topics_after_start(store, disk) == {"a", "b", "c"}


async def test_a_log_that_is_gone_starts_over_at_its_snapshot(disk: MemoryFileSystem) -> None:
    store = MemoryLog()
    await closed_with_topics(store, disk, "a")
    (snapshot_id,) = snapshots(disk)
    empty = MemoryLog()
    assert await topics_after_start(empty, disk) == {"a"}
    assert empty.log_start_offset == snapshot_id.end_offset


async def test_a_log_of_an_older_epoch_than_the_snapshot_starts_over(disk: MemoryFileSystem) -> None:
    store = MemoryLog()
    await closed_with_topics(store, disk, "a")
    await closed_with_topics(store, disk, "b")
    older = MemoryLog()
    await closed_with_topics(older, empty_disk(), *"cdefghi")
    newest = snapshots(disk)[-1]
    assert older.log_end_offset > newest.end_offset
    assert await topics_after_start(older, disk) == {"a", "b"}
    assert older.log_start_offset == newest.end_offset


async def test_a_log_that_has_started_over_does_not_again(
    disk: MemoryFileSystem, log_lines: list[EventDict]
) -> None:
    await closed_with_topics(MemoryLog(), disk, "a")
    (snapshot_id,) = snapshots(disk)
    store = MemoryLog(log_start_offset=snapshot_id.end_offset)
    assert await topics_after_start(store, disk) == {"a"}
    assert not any("starts over" in line["event"] for line in log_lines)


# --- when snapshots come --------------------------------------------------------------------------


async def test_a_snapshot_is_written_once_enough_bytes_came(disk: MemoryFileSystem) -> None:
    store = MemoryLog()
    controller = await started(store, disk, NOW_AND_THEN)
    await controller.create_topics([NewTopic("a", 20)])
    due_end_offset = store.log_end_offset
    await controller.create_topics([NewTopic("b", 1)])
    await settle()
    assert [one.end_offset for one in snapshots(disk)] == [due_end_offset]


async def test_a_snapshot_holds_exactly_the_decisions_from_before_it_was_due(
    disk: MemoryFileSystem,
) -> None:
    store = MemoryLog()
    controller = await started(store, disk, NOW_AND_THEN)
    await controller.create_topics([NewTopic("a", 20)])
    store.held = True
    waiting = controller.create_topics([NewTopic("b", 1)])
    await settle()
    (due,) = snapshots(disk)
    store.held = False
    store.release()
    await waiting
    del store.batches[-1:]
    assert store.log_end_offset == due.end_offset
    assert await topics_after_start(store, disk) == {"a"}


async def test_records_that_only_add_are_not_written_twice(disk: MemoryFileSystem) -> None:
    store = MemoryLog()
    settings = SnapshotSettings(record_bytes=1_000, cleanable_ratio=0.5)
    controller = await started(store, disk, settings)
    await controller.create_topics([NewTopic("a", 20)])
    await settle()
    assert len(snapshots(disk)) == 1
    await controller.create_topics([NewTopic("b", 50)])
    await settle()
    assert len(snapshots(disk)) == 1
    await controller.delete_topics([controller.image.topics_by_name["a"].topic_id])
    await settle()
    assert len(snapshots(disk)) == 2


async def test_a_setting_that_goes_to_and_fro_makes_a_snapshot_due(disk: MemoryFileSystem) -> None:
    store = MemoryLog()
    controller = await started(store, disk, SnapshotSettings(record_bytes=1_000, cleanable_ratio=0.5))
    await controller.create_topics([NewTopic("a", 20)])
    await settle()
    for value in range(60):
        await set_retention(controller, "a", value)
    await settle()
    assert len(snapshots(disk)) == 2


async def test_a_change_waits_for_its_snapshot_no_longer_than_the_interval(disk: MemoryFileSystem) -> None:
    store, clock = MemoryLog(), HandClock()
    controller = await started(store, disk, SnapshotSettings(interval_ms=5_000), clock)
    clock.now_ms += 1_000
    await controller.create_topics([NewTopic("a", 1)])
    assert controller.log.next_deadline_ms() == clock.now_ms + 4_000
    clock.now_ms += 4_000
    controller.log.expire(clock.now_ms)
    await settle()
    assert snapshots(disk) == [SnapshotId(store.log_end_offset, 0)]
    assert controller.log.next_deadline_ms() is None


async def test_deadlines_are_told_as_they_arise(disk: MemoryFileSystem) -> None:
    clock = HandClock()
    controller = await started(MemoryLog(), disk, SnapshotSettings(interval_ms=5_000), clock)
    told: list[int] = []
    controller.log.on_deadline = told.append
    clock.now_ms += 1
    await controller.create_topics([NewTopic("a", 1)])
    assert told == [clock.now_ms + 4_999]


async def test_a_snapshot_that_cannot_be_written_is_tried_again_and_nothing_else_suffers(
    disk: MemoryFileSystem, log_lines: list[EventDict], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, clock = MemoryLog(), HandClock()
    controller = await started(store, disk, NOW_AND_THEN, clock)

    async def full(_: MemoryLog) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(MemoryLog, "flush", full)
        for name in ("a", "b"):
            await controller.create_topics([NewTopic(name, 20)])
            await settle()
    assert [line["reason"] for line in log_lines] == ["no space left"]
    clock.now_ms += RETRY_MS
    controller.log.expire(clock.now_ms)
    await settle()
    assert snapshots(disk) == [SnapshotId(store.log_end_offset, 0)]
    assert await topics_after_start(store, disk) == {"a", "b"}


async def test_a_log_start_that_is_refused_is_moved_later(
    disk: MemoryFileSystem, log_lines: list[EventDict], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: MemoryLog, before_offset: int) -> int:
        raise ApiError(ErrorCode.offset_out_of_range, f"{before_offset} is beyond the end")

    with monkeypatch.context() as patch:
        patch.setattr(MemoryLog, "delete_records", refuse)
        store, clock, controller = await with_snapshots(2, disk)
    assert store.log_start_offset == 0
    assert any("is beyond the end" in line["reason"] for line in log_lines)
    assert controller.log.next_deadline_ms() == clock.now_ms + LOG_START_CHECK_MS
    clock.now_ms += LOG_START_CHECK_MS
    controller.log.expire(clock.now_ms)
    await settle()
    assert store.log_start_offset == snapshots(disk)[0].end_offset > 0


async def test_a_close_without_a_disk_tells_and_ends(
    disk: MemoryFileSystem, log_lines: list[EventDict], monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = await started(MemoryLog(), disk)

    async def full(_: MemoryLog) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(MemoryLog, "flush", full)
    await controller.close()
    assert "no space left" in [line["reason"] for line in log_lines]


# --- where the log begins -------------------------------------------------------------------------


async def with_snapshots(
    count: int,
    disk: MemoryFileSystem,
    settings: SnapshotSettings = NOW_AND_THEN,
    *,
    before: Callable[[Controller], None] = lambda _: None,
) -> tuple[MemoryLog, HandClock, Controller]:
    """A controller that has taken this number of snapshots."""
    store, clock = MemoryLog(), HandClock()
    controller = await started(store, disk, settings, clock)
    for number in range(count):
        before(controller)
        await controller.create_topics([NewTopic(f"t{number}", 20)])
        await settle()
    return store, clock, controller


async def test_two_snapshots_are_kept_and_the_log_from_the_older_one_on(disk: MemoryFileSystem) -> None:
    store, _, _ = await with_snapshots(4, disk)
    older, newest = snapshots(disk)
    assert store.log_start_offset == older.end_offset
    assert store.log_end_offset == newest.end_offset
    assert await topics_after_start(store, disk) == {"t0", "t1", "t2", "t3"}


async def test_a_log_with_one_snapshot_keeps_its_start(disk: MemoryFileSystem) -> None:
    store, _, _ = await with_snapshots(1, disk)
    assert store.log_start_offset == 0


async def test_the_log_waits_for_its_followers_and_keeps_all_snapshots_meanwhile(
    disk: MemoryFileSystem,
) -> None:
    store, _, controller = await with_snapshots(
        4, disk, before=lambda controller: controller.log.follower_heard(FOLLOWER, 3)
    )
    taken = snapshots(disk)
    assert (store.log_start_offset, len(taken)) == (0, 4)
    controller.log.follower_heard(FOLLOWER, taken[1].end_offset + 5)
    await settle()
    assert store.log_start_offset == taken[1].end_offset
    assert snapshots(disk) == taken[1:]


@pytest.mark.parametrize("shift_ms", [0, -DAY_MS, DAY_MS])
async def test_no_follower_is_waited_for_beyond_the_time_of_the_setting(
    disk: MemoryFileSystem, shift_ms: int
) -> None:
    settings = NOW_AND_THEN._replace(start_lag_ms=3 * LOG_START_CHECK_MS)
    store, clock, controller = await with_snapshots(
        3, disk, settings, before=lambda controller: controller.log.follower_heard(FOLLOWER, 3)
    )
    assert controller.log.next_deadline_ms() == clock.now_ms + LOG_START_CHECK_MS
    clock.wall_shift_ms = shift_ms
    for _ in range(3):
        assert store.log_start_offset == 0
        clock.now_ms += LOG_START_CHECK_MS
        controller.log.follower_heard(FOLLOWER, 3)
        await settle()
    assert store.log_start_offset == snapshots(disk)[0].end_offset > 0
    assert len(snapshots(disk)) == 2


async def test_a_follower_that_fell_silent_is_not_waited_for(disk: MemoryFileSystem) -> None:
    store, clock, controller = await with_snapshots(
        2, disk, before=lambda controller: controller.log.follower_heard(FOLLOWER, 3)
    )
    assert store.log_start_offset == 0
    clock.now_ms += FOLLOWER_SESSION_MS
    controller.log.expire(clock.now_ms)
    await settle()
    assert store.log_start_offset == snapshots(disk)[0].end_offset


async def test_too_much_on_the_disk_ends_the_wait(disk: MemoryFileSystem) -> None:
    settings = NOW_AND_THEN._replace(retention_bytes=1_000)
    store, _, _ = await with_snapshots(
        2, disk, settings, before=lambda controller: controller.log.follower_heard(FOLLOWER, 3)
    )
    assert store.log_start_offset == snapshots(disk)[0].end_offset > 0


async def test_snapshots_that_a_crash_left_below_the_log_start_go_at_the_next_start(
    disk: MemoryFileSystem,
) -> None:
    store, _, _ = await with_snapshots(2, disk)
    stale = path_of(SnapshotId(1, 0))
    disk.files[stale] = bytearray(disk.files[path_of(snapshots(disk)[0])])
    await started(store, disk)
    assert not disk.exists(stale)
    assert len(snapshots(disk)) == 2
