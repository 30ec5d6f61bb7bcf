"""The checkpoint files of a data directory: written offsets, deleted partitions, concurrent writes."""

import asyncio

import pytest

from barnabas.storage.directory.checkpoints import Checkpoints
from barnabas.storage.format.checkpoint_file import decode_offsets
from tests.storage.log_building import append, append_deltas, open_log
from tests.storage.memory_filesystem import MemoryFileSystem

KEY = ("orders", 0)


@pytest.fixture
def filesystem() -> MemoryFileSystem:
    filesystem = MemoryFileSystem()
    filesystem.make_directory("/data")
    return filesystem


def written(filesystem: MemoryFileSystem) -> dict[str, dict[tuple[str, int], int]]:
    return {
        path.rpartition("/")[2].split("-")[0]: decode_offsets(bytes(content))
        for path, content in filesystem.files.items()
        if path.endswith("-offset-checkpoint")
    }


async def test_offsets_of_logs_are_written_and_read_back(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem)
    append(log, 5)
    append_deltas(log)
    log.delete_records(2)
    await log.flush()
    await Checkpoints(filesystem, "/data").write([log], high_watermarks=True)
    assert written(filesystem) == {"recovery": {KEY: 6}, "log": {KEY: 2}, "replication": {KEY: 5}}
    again = Checkpoints(filesystem, "/data")
    await again.load()
    assert (again.recovery_point(KEY), again.log_start_offset(KEY)) == (6, 2)
    assert (again.recovery_point(("bills", 0)), again.log_start_offset(("bills", 0))) == (0, 0)


async def test_only_changed_files_are_written(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem)
    checkpoints = Checkpoints(filesystem, "/data")
    await checkpoints.write([log])
    filesystem.run_count = 0
    await checkpoints.write([log])
    assert filesystem.run_count == 0
    append(log)
    await checkpoints.write([log])
    assert filesystem.run_count == 0
    await log.flush()
    filesystem.run_count = 0
    await checkpoints.write([log])
    assert (filesystem.run_count, written(filesystem)) == (1, {"recovery": {KEY: 1}})


async def test_deleted_partition_is_left_out(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem)
    append(log)
    await log.flush()
    checkpoints = Checkpoints(filesystem, "/data")
    await checkpoints.write([log])
    checkpoints.forget(KEY)
    await checkpoints.write([])
    assert written(filesystem) == {"recovery": {}}


async def test_the_end_of_a_compaction_is_written_at_once(filesystem: MemoryFileSystem) -> None:
    checkpoints = Checkpoints(filesystem, "/data")
    assert checkpoints.cleaned_offset(KEY) == 0
    await checkpoints.write_cleaned(KEY, 17)
    assert written(filesystem) == {"cleaner": {KEY: 17}}
    again = Checkpoints(filesystem, "/data")
    await again.load()
    assert again.cleaned_offset(KEY) == 17
    again.forget(KEY)
    await again.write([])
    assert written(filesystem) == {"cleaner": {}}


class OneAtATime(MemoryFileSystem):
    """Refuses to replace a file during another replacement, which takes some time."""

    def __init__(self) -> None:
        super().__init__()
        self.replaced: set[str] = set()

    async def replace_whole(self, path: str, data: bytes) -> None:
        assert path not in self.replaced, f"{path} has one temporary file"
        self.replaced.add(path)
        for _ in range(5):
            await asyncio.sleep(0)
        await super().replace_whole(path, data)
        self.replaced.remove(path)


async def test_concurrent_writes_take_turns() -> None:
    filesystem = OneAtATime()
    filesystem.make_directory("/data")
    checkpoints = Checkpoints(filesystem, "/data")
    writing: list[asyncio.Task[None]] = []
    for offset in range(1, 4):
        writing.append(asyncio.create_task(checkpoints.write_cleaned(KEY, offset)))
        writing.append(asyncio.create_task(checkpoints.write([])))
        await asyncio.sleep(0)
    await asyncio.gather(*writing)
    assert written(filesystem) == {"cleaner": {KEY: 3}}


async def test_the_log_start_is_noted_as_far_as_the_log_is_durable(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem)
    append(log, 5)
    await log.flush()
    append(log, 5)
    log.delete_records(8)
    checkpoints = Checkpoints(filesystem, "/data")
    await checkpoints.write([log])
    assert written(filesystem)["log"] == {KEY: 5}
    await log.flush()
    await checkpoints.write([log])
    assert written(filesystem)["log"] == {KEY: 8}


async def test_a_noted_log_start_stays_until_the_log_reaches_it(filesystem: MemoryFileSystem) -> None:
    checkpoints = Checkpoints(filesystem, "/data")
    checkpoints.begin_at(KEY, 9)
    log = await open_log(filesystem, log_start_offset=9)
    await checkpoints.write([log])
    assert written(filesystem)["log"] == {KEY: 9}


async def test_a_log_that_starts_over_does_not_count_as_durable(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem)
    append(log, 5)
    await log.flush()
    checkpoints = Checkpoints(filesystem, "/data")
    await checkpoints.write([log], high_watermarks=True)
    checkpoints.begin_at(KEY, 9)
    await checkpoints.write([], high_watermarks=True)
    assert written(filesystem) == {"recovery": {KEY: 0}, "log": {KEY: 9}, "replication": {KEY: 9}}
