"""The checkpoint files of a data directory: written offsets, deleted partitions, concurrent writes."""

import asyncio
from collections.abc import Callable

import pytest
from structlog.typing import EventDict

from barnabas.storage.directory.checkpoints import Checkpoints
from barnabas.storage.errors import InvalidDirectory
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


# Damage.

LOG_STARTS, COPY = "/data/log-start-offset-checkpoint", "/data/log-start-offset-checkpoint.copy"
DAMAGES: dict[str, Callable[[bytearray], None]] = {
    "a changed digit": lambda content: content.__setitem__(content.index(b"12"), ord("7")),
    "cut short": lambda content: content.__delitem__(slice(8, None)),
    "cut behind the version": lambda content: content.__delitem__(slice(2, None)),
    "empty": lambda content: content.clear(),
}
with_each_damage = pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)


async def with_a_log_start(filesystem: MemoryFileSystem) -> None:
    checkpoints = Checkpoints(filesystem, "/data")
    checkpoints.note_log_start(KEY, 12)
    await checkpoints.write_log_starts()


@with_each_damage
async def test_a_copy_takes_the_place_of_damaged_log_starts(
    filesystem: MemoryFileSystem, log_lines: list[EventDict], damage: Callable[[bytearray], None]
) -> None:
    await with_a_log_start(filesystem)
    damage(filesystem.files[LOG_STARTS])
    again = Checkpoints(filesystem, "/data")
    await again.load()
    assert again.log_start_offset(KEY) == 12
    assert [(line["log_level"], line["path"]) for line in log_lines] == [("warning", LOG_STARTS)]
    await again.write([])
    assert filesystem.files[LOG_STARTS] == filesystem.files[COPY]
    assert decode_offsets(bytes(filesystem.files[LOG_STARTS])) == {KEY: 12}


@with_each_damage
async def test_without_a_good_copy_damaged_log_starts_are_refused(
    filesystem: MemoryFileSystem, damage: Callable[[bytearray], None]
) -> None:
    await with_a_log_start(filesystem)
    for path in (LOG_STARTS, COPY):
        damage(filesystem.files[path])
    with pytest.raises(InvalidDirectory, match=f"{LOG_STARTS} is damaged: .* deleted records .* come back"):
        await Checkpoints(filesystem, "/data").load()
    for path in (LOG_STARTS, COPY):
        filesystem.remove(path)
    again = Checkpoints(filesystem, "/data")
    await again.load()
    assert again.log_start_offset(KEY) == 0


async def test_log_starts_of_an_earlier_version_get_a_copy(filesystem: MemoryFileSystem) -> None:
    filesystem.files[LOG_STARTS] = bytearray(b"0\n1\norders 0 12\n")
    checkpoints = Checkpoints(filesystem, "/data")
    await checkpoints.load()
    await checkpoints.write([])
    assert decode_offsets(bytes(filesystem.files[COPY])) == {KEY: 12}


@with_each_damage
async def test_other_damaged_checkpoints_count_as_empty_with_a_warning(
    filesystem: MemoryFileSystem, log_lines: list[EventDict], damage: Callable[[bytearray], None]
) -> None:
    await Checkpoints(filesystem, "/data").write_cleaned(KEY, 12)
    path = "/data/cleaner-offset-checkpoint"
    damage(filesystem.files[path])
    again = Checkpoints(filesystem, "/data")
    await again.load()
    assert again.cleaned_offset(KEY) == 0
    # Kafka creates a file without entries, so nothing shows that it had any.
    assert [line["path"] for line in log_lines] == [path] * (len(filesystem.files[path]) > 2)
