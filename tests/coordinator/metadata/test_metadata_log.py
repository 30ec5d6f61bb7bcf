"""The metadata on disk: snapshots when they are due, at a clean close, and what a start makes of them."""

import asyncio
from pathlib import Path

import pytest

from barnabas.coordinator.metadata.snapshot import parse_snapshot_name
from barnabas.coordinator.metadata.topic_decisions import NewTopic
from barnabas.storage.errors import InvalidDirectory
from tests.coordinator.metadata.metadata_fakes import MemoryLog, controller_over


def snapshots(directory: Path) -> list[Path]:
    return sorted(path for path in directory.iterdir() if parse_snapshot_name(path.name))


def names(directory: Path) -> list[str]:
    return [path.name for path in snapshots(directory)]


async def closed_with_topics(store: MemoryLog, directory: Path, *names: str) -> None:
    controller = controller_over(store, directory)
    await controller.start()
    await controller.create_topics([NewTopic(name, 1) for name in names])
    await controller.close()


async def topics_after_start(store: MemoryLog, directory: Path) -> set[str]:
    controller = controller_over(store, directory)
    await controller.start()
    return set(controller.image.topics_by_name)


async def test_a_clean_close_leaves_a_snapshot_of_everything(tmp_path: Path) -> None:
    store = MemoryLog()
    await closed_with_topics(store, tmp_path, "a")
    assert [path.name for path in snapshots(tmp_path)] == [
        f"{store.log_end_offset:020d}-0000000000.checkpoint"
    ]
    assert store.flush_count == 1


async def test_a_start_reads_the_snapshot_and_what_follows_it(tmp_path: Path) -> None:
    store = MemoryLog()
    await closed_with_topics(store, tmp_path, "a")
    controller = controller_over(store, tmp_path)
    await controller.start()
    await controller.create_topics([NewTopic("b", 1)])
    assert await topics_after_start(store, tmp_path) == {"a", "b"}


async def test_two_snapshots_are_kept_and_the_log_from_the_older_one_on(tmp_path: Path) -> None:
    store = MemoryLog()
    for name in ("a", "b", "c"):
        await closed_with_topics(store, tmp_path, name)
    kept = [parse_snapshot_name(path.name) for path in snapshots(tmp_path)]
    assert len(kept) == 2
    assert kept[0] is not None
    assert store.log_start_offset == kept[0].end_offset
    assert await topics_after_start(store, tmp_path) == {"a", "b", "c"}


async def test_a_spoilt_snapshot_is_made_up_for_by_the_one_before(tmp_path: Path) -> None:
    store = MemoryLog()
    for name in ("a", "b", "c"):
        await closed_with_topics(store, tmp_path, name)
    newest = snapshots(tmp_path)[-1]
    newest.write_bytes(newest.read_bytes()[:-1])
    assert await topics_after_start(store, tmp_path) == {"a", "b", "c"}


async def test_missing_records_stop_the_start(tmp_path: Path) -> None:
    store = MemoryLog()
    for name in ("a", "b", "c"):
        await closed_with_topics(store, tmp_path, name)
    for path in snapshots(tmp_path):
        path.unlink()
    with pytest.raises(InvalidDirectory, match="do not follow its snapshot"):
        await topics_after_start(store, tmp_path)


async def test_a_snapshot_is_written_once_enough_bytes_came(tmp_path: Path) -> None:
    store = MemoryLog()
    controller = controller_over(store, tmp_path, bytes_between_snapshots=1_000)
    await controller.start()
    await controller.create_topics([NewTopic("a", 20)])
    due_end_offset = store.log_end_offset
    await asyncio.sleep(0)  # Its task takes the image as it is now.
    await controller.create_topics([NewTopic("b", 1)])
    await controller.close()
    end_offsets = [snapshot.end_offset for snapshot in map(parse_snapshot_name, names(tmp_path)) if snapshot]
    assert end_offsets == [due_end_offset, store.log_end_offset]


async def test_a_close_with_nothing_new_writes_nothing(tmp_path: Path) -> None:
    store = MemoryLog()
    controller = controller_over(store, tmp_path)
    await controller.start()
    await controller.close()
    before = snapshots(tmp_path)
    await controller.close()
    assert snapshots(tmp_path) == before
    assert store.flush_count == 1


async def test_a_snapshot_that_cannot_be_written_is_told_each_time_and_nothing_else_suffers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryLog()
    controller = controller_over(store, tmp_path, bytes_between_snapshots=1_000)
    await controller.start()

    async def full(_: MemoryLog) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(MemoryLog, "flush", full)
        for name in ("a", "b"):
            await controller.create_topics([NewTopic(name, 20)])
            for _ in range(3):
                await asyncio.sleep(0)  # Its task fails, and says so.
    told = [record.getMessage() for record in caplog.records]
    assert [message.endswith("no space left") for message in told] == [True, True]
    await controller.close()
    assert await topics_after_start(store, tmp_path) == {"a", "b"}
