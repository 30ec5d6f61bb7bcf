"""The sizes of logs, open or not, and the space of the disk."""

from pathlib import Path

from barnabas.storage.directory.directory_usage import partition_sizes
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.filesystem import FileSystem, RealFileSystem
from barnabas.storage.log_config import LogConfig
from barnabas.storage.topic_partition import TopicPartition
from tests.storage.log_building import NOW_MS, TOPIC_ID, append
from tests.storage.memory_filesystem import MemoryFileSystem

FIRST, SECOND, THIRD = (TopicPartition("t", index) for index in range(3))


async def open_directory(filesystem: FileSystem, path: str) -> LogDirectory:
    return await LogDirectory.open(filesystem, path, node_id=1, wall_ms=lambda: NOW_MS)


async def test_logs_are_measured_open_and_closed() -> None:
    filesystem = MemoryFileSystem()
    directory = await open_directory(filesystem, "/data")
    for partition in range(2):
        log = await directory.log("t", partition, TOPIC_ID, LogConfig(segment_bytes=200))
        for _ in range(5 * (partition + 1)):
            append(log)
    sizes = await partition_sizes(directory, [FIRST, SECOND, THIRD])
    assert sizes[FIRST] * 2 == sizes[SECOND] > 0
    assert THIRD not in sizes
    await directory.close()
    closed = await open_directory(filesystem, "/data")
    assert await partition_sizes(closed, [FIRST, SECOND, THIRD]) == sizes
    await closed.close()


async def test_a_directory_that_goes_meanwhile_has_no_size() -> None:
    class Vanishing(MemoryFileSystem):
        def list_directory(self, path: str) -> list[str]:
            if path.endswith("t-0"):
                raise FileNotFoundError(path)
            return super().list_directory(path)

    filesystem = Vanishing()
    directory = await open_directory(filesystem, "/data")
    filesystem.make_directory("/data/t-0")
    assert await partition_sizes(directory, [FIRST]) == {FIRST: 0}
    await directory.close()


def test_the_space_of_a_disk_is_known(tmp_path: Path) -> None:
    space = RealFileSystem().disk_space(str(tmp_path))
    assert 0 < space.usable_bytes <= space.total_bytes
