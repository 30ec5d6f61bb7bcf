import pytest

from barnabas.storage.checkpoints import Checkpoints
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


async def test_only_what_changed_is_written(filesystem: MemoryFileSystem) -> None:
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
