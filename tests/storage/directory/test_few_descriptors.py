"""A system with fewer descriptors than the storage would use: segments are closed for others."""

import pytest

from barnabas.storage.errors import LogOffline
from barnabas.storage.log_config import LogConfig
from tests.storage.directory.test_log_directory import log_of, open_directory, pass_time
from tests.storage.log_building import TOPIC_ID, append, small_storage, values_read
from tests.storage.memory_filesystem import MemoryFileSystem


async def test_more_logs_than_descriptors_are_written_rolled_and_read() -> None:
    filesystem = MemoryFileSystem()
    directory = await open_directory(filesystem, storage=small_storage(open_files_max=1000))
    filesystem.descriptors_max = 12
    config = LogConfig(segment_bytes=200)
    for _ in range(2):
        for partition in range(30):
            append(await directory.log("orders", partition, TOPIC_ID, config), value=b"v" * 100)
    for partition in range(30):
        log = await directory.log("orders", partition, TOPIC_ID, config)
        assert (log.segment_count, values_read(log)) == (2, [(0, b"v" * 100), (1, b"v" * 100)])
    await directory.close()


async def test_without_any_descriptor_a_log_is_refused_and_opened_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    filesystem = MemoryFileSystem()
    directory = await open_directory(filesystem)
    filesystem.descriptors_max = 0
    with pytest.raises(LogOffline, match="Too many open files"):
        await log_of(directory)
    filesystem.descriptors_max = None
    pass_time(monkeypatch)
    append(await log_of(directory))
    await directory.close()
