"""Directories that an interrupted deletion left are removed; directories of unknown topics are kept."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from uuid import UUID

import pytest

from barnabas.storage.directory.leftovers import DELETE_SUFFIX, STRAY_SUFFIX
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.log_config import LogConfig
from tests.storage.log_building import NOW_MS, append
from tests.storage.memory_filesystem import MemoryFileSystem
from tests.storage.steady_filesystem import SteadyFileSystem

PATH = "/data"
DELETED, ANOTHER, UNKNOWN = UUID(int=21), UUID(int=22), UUID(int=23)
ID_FILE = "partition.metadata"


class Disk(MemoryFileSystem):
    """Counts the syncs of the data directory, and refuses to rename certain directories."""

    def __init__(self) -> None:
        super().__init__()
        self.data_directory_syncs = 0
        self.unmovable = ""

    def sync_directory(self, path: str) -> None:
        self.data_directory_syncs += path == PATH
        super().sync_directory(path)

    def rename(self, source: str, target: str) -> None:
        if source == f"{PATH}/{self.unmovable}":
            raise OSError(errno.EIO, "the disk says no", source)
        super().rename(source, target)


@pytest.fixture
def disk() -> Disk:
    return Disk()


async def opened(disk: Disk) -> LogDirectory:
    return await LogDirectory.open(disk, PATH, node_id=1, wall_ms=lambda: NOW_MS)


async def filled(disk: Disk, topic: str, topic_id: UUID, partition_count: int = 2) -> None:
    """Leaves logs of a topic behind, like a crash."""
    directory = await opened(disk)
    for index in range(partition_count):
        append(await directory.log(topic, index, topic_id, LogConfig()))
    await directory.close(clean=False)


def names(disk: Disk) -> dict[str, str]:
    """The suffix of each partition's directory."""
    found = [name.removeprefix(f"{PATH}/") for name in disk.directories if name.startswith(f"{PATH}/")]
    ends = {
        name: suffix for name in found for suffix in (DELETE_SUFFIX, STRAY_SUFFIX) if name.endswith(suffix)
    }
    return {name.partition(".")[0]: ends.get(name, "") for name in found}


async def settled(disk: Disk, topics: set[str], deleted: Mapping[UUID, str]) -> LogDirectory:
    directory = await opened(disk)
    await directory.settle_leftovers(topics, deleted)
    return directory


async def test_logs_of_a_deleted_topic_are_removed_at_the_next_start(disk: Disk) -> None:
    await filled(disk, "orders", DELETED)
    directory = await settled(disk, set(), {DELETED: "orders"})
    assert names(disk) == {"orders-0": DELETE_SUFFIX, "orders-1": DELETE_SUFFIX}
    directory.start()
    await directory.close()
    assert not [name for name in disk.files if "orders" in name]


async def test_a_crash_after_the_marking_keeps_nothing_either(disk: Disk) -> None:
    await filled(disk, "orders", DELETED)
    await (await settled(disk, set(), {DELETED: "orders"})).close(clean=False)
    directory = await settled(disk, set(), {})
    directory.start()
    await directory.close()
    assert names(disk) == {}


@pytest.mark.parametrize(
    ("found", "topics", "expected"),
    [
        pytest.param(DELETED, set[str](), DELETE_SUFFIX, id="its own"),
        pytest.param(DELETED, {"orders"}, DELETE_SUFFIX, id="its own, and its name another topic's now"),
        pytest.param(ANOTHER, {"orders"}, "", id="that of another topic of the name"),
        pytest.param(UNKNOWN, set[str](), STRAY_SUFFIX, id="of an unknown topic"),
        pytest.param(None, set[str](), DELETE_SUFFIX, id="by its name"),
        pytest.param(None, {"orders"}, "", id="by its name that of another topic"),
        pytest.param(b"garbage", set[str](), DELETE_SUFFIX, id="by its name, the id being damaged"),
    ],
)
async def test_a_directory_is_the_deleted_topics(
    disk: Disk, found: UUID | bytes | None, topics: set[str], expected: str
) -> None:
    await filled(disk, "orders", found if isinstance(found, UUID) else DELETED, 1)
    if found is None:
        disk.remove(f"{PATH}/orders-0/{ID_FILE}")
    elif isinstance(found, bytes):
        disk.files[f"{PATH}/orders-0/{ID_FILE}"] = bytearray(found)
    await settled(disk, topics, {DELETED: "orders"})
    assert names(disk) == {"orders-0": expected}


async def test_a_directory_of_another_name_is_not_a_deleted_topics(disk: Disk) -> None:
    await filled(disk, "copies", DELETED, 1)
    await settled(disk, set(), {DELETED: "orders"})
    assert names(disk) == {"copies-0": STRAY_SUFFIX}


async def test_many_are_marked_with_one_sync(disk: Disk) -> None:
    await filled(disk, "orders", DELETED, 50)
    directory = await opened(disk)
    before = disk.data_directory_syncs
    await directory.settle_leftovers(set(), {DELETED: "orders"})
    assert disk.data_directory_syncs == before + 1


async def test_a_deletion_is_marked_with_one_sync(disk: Disk) -> None:
    directory = await opened(disk)
    for index in range(50):
        append(await directory.log("orders", index, DELETED, LogConfig()))
    before = disk.data_directory_syncs
    await directory.delete_topic("orders")
    assert disk.data_directory_syncs == before + 1
    assert names(disk) == {}


async def test_a_directory_that_cannot_be_marked_keeps_no_other(disk: Disk) -> None:
    await filled(disk, "orders", DELETED, 3)
    directory = await opened(disk)
    disk.unmovable = "orders-1"
    with pytest.raises(OSError, match="says no"):
        await directory.delete_topic("orders")
    assert names(disk) == {"orders-0": DELETE_SUFFIX, "orders-1": "", "orders-2": DELETE_SUFFIX}


async def test_a_directory_that_cannot_be_removed_keeps_no_other(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(disk, "orders", DELETED, 3)
    remove_tree = disk.remove_tree

    def remove_most(path: str) -> None:
        if "orders-1." in path:
            raise OSError(errno.EIO, "the disk says no", path)
        remove_tree(path)

    monkeypatch.setattr(disk, "remove_tree", remove_most)
    directory = await settled(disk, set(), {DELETED: "orders"})
    directory.start()
    await directory.close()
    assert names(disk) == {"orders-1": DELETE_SUFFIX}


async def test_a_long_name_can_be_marked(tmp_path: object) -> None:
    filesystem, path, topic = SteadyFileSystem(), f"{tmp_path}/data", "t" * 249
    directory = await LogDirectory.open(filesystem, path, node_id=1, wall_ms=lambda: NOW_MS)
    await directory.log(topic, 0, DELETED, LogConfig())
    await directory.close()
    directory = await LogDirectory.open(filesystem, path, node_id=1, wall_ms=lambda: NOW_MS)
    found = await directory.settle_leftovers(set(), {DELETED: topic})
    assert [key.topic for key in found.deleted] == [topic]
    directory.start()
    await directory.close()
    assert not [name for name in filesystem.list_directory(path) if name.startswith("t")]
