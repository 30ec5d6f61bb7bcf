"""The state of a disk after a loss of power, and the ways in which it fails."""

import asyncio
import errno
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from tests.simulation.simulated_disk import Disk, FileNode, SimulatedFileSystem, find
from tests.simulation.trace import Trace
from tests.simulation.virtual_loop import Killed, Process, VirtualLoop

Scene = Callable[[Disk, SimulatedFileSystem], Awaitable[None]]


def on_disk(scene: Scene, seed: int = 0) -> Disk:
    """Plays the scene in a process with an empty `/data`; returns the disk afterwards."""
    loop = VirtualLoop()
    disk = Disk(Random(seed), Trace(lambda: loop.now_ms))
    disk.make_durable_directory("/data")

    async def main() -> None:
        process = Process("p")
        disk.on_crash = process.kill
        await scene(disk, SimulatedFileSystem(disk, process, loop))

    try:
        loop.run_until_complete(main())
    finally:
        loop.bury_tasks()
        loop.close()
    return disk


def content(disk: Disk, path: str) -> bytes | None:
    node = find(disk.root, path)
    return bytes(node.content) if isinstance(node, FileNode) else None


def left_by_power_loss(scene: Scene, path: str = "/data/f") -> set[bytes | None]:
    """The possible contents of the file after a loss of power."""
    left: set[bytes | None] = set()
    for seed in range(60):
        disk = on_disk(scene, seed)
        disk.lose_power()
        left.add(content(disk, path))
    return left


async def write_synced(_: Disk, filesystem: SimulatedFileSystem) -> None:
    file = filesystem.open("/data/f", create=True)
    file.write([b"ab", b"cd"])
    file.sync()
    filesystem.sync_directory("/data")


async def write_synced_without_directory(_: Disk, filesystem: SimulatedFileSystem) -> None:
    file = filesystem.open("/data/f", create=True)
    file.write([b"abcd"])
    file.sync()


async def write_more(disk: Disk, filesystem: SimulatedFileSystem) -> None:
    await write_synced(disk, filesystem)
    filesystem.open("/data/f", create=False).write([b"efgh"])


async def truncate(disk: Disk, filesystem: SimulatedFileSystem) -> None:
    await write_synced(disk, filesystem)
    filesystem.open("/data/f", create=False).truncate(2)


async def rename(disk: Disk, filesystem: SimulatedFileSystem) -> None:
    await write_synced(disk, filesystem)
    filesystem.rename("/data/f", "/data/g")


async def replace(disk: Disk, filesystem: SimulatedFileSystem) -> None:
    await write_synced(disk, filesystem)
    await filesystem.replace_whole("/data/f", b"new")


def test_synced_data_stays() -> None:
    assert left_by_power_loss(write_synced) == {b"abcd"}


def test_a_new_file_stays_once_its_directory_is_synced() -> None:
    assert left_by_power_loss(write_synced_without_directory) == {b"abcd", None}


def test_unsynced_data_is_lost_kept_or_torn() -> None:
    left = left_by_power_loss(write_more)
    assert {b"abcd", b"abcdefgh", b"abcdef"} <= left
    assert b"abcd\0\0\0\0" in left
    assert all(one is not None and one.startswith(b"abcd") for one in left)


def test_a_truncation_may_be_lost() -> None:
    assert left_by_power_loss(truncate) == {b"ab", b"abcd"}


def test_a_rename_may_be_lost() -> None:
    assert left_by_power_loss(rename) == {b"abcd", None}
    assert left_by_power_loss(rename, "/data/g") == {b"abcd", None}


def test_a_replaced_file_is_new() -> None:
    assert left_by_power_loss(replace) == {b"new"}


def test_the_end_of_the_process_loses_nothing() -> None:
    assert content(on_disk(write_more), "/data/f") == b"abcdefgh"


def test_nothing_reaches_the_disk_after_the_process() -> None:
    async def scene(disk: Disk, filesystem: SimulatedFileSystem) -> None:
        file = filesystem.open("/data/f", create=True)
        disk.crash_at = disk.operation_count + 2
        file.write([b"one"])
        with pytest.raises(Killed):
            file.write([b"two"])
        with pytest.raises(Killed):
            file.write([b"three"])

    assert {content(on_disk(scene, seed), "/data/f") for seed in range(20)} == {b"one", b"onetwo"}


def test_a_failing_write_takes_effect_in_part() -> None:
    async def scene(disk: Disk, filesystem: SimulatedFileSystem) -> None:
        file = filesystem.open("/data/f", create=True)
        disk.faults.failing_path = "/data/"
        with pytest.raises(OSError, match="input/output") as raised:
            file.write([b"abcd"])
        assert raised.value.errno == errno.EIO

    left = {content(on_disk(scene, seed), "/data/f") for seed in range(40)}
    assert left == {b"", b"a", b"ab", b"abc"}


def test_a_write_to_a_full_disk_fills_it() -> None:
    async def scene(disk: Disk, filesystem: SimulatedFileSystem) -> None:
        file = filesystem.open("/data/f", create=True)
        disk.faults.free_bytes = 6
        file.write([b"abcd"])
        with pytest.raises(OSError, match="no space") as raised:
            file.write([b"efgh"])
        assert raised.value.errno == errno.ENOSPC

    assert content(on_disk(scene), "/data/f") == b"abcdef"


def test_a_slow_disk_takes_its_time() -> None:
    async def scene(disk: Disk, filesystem: SimulatedFileSystem) -> None:
        file = filesystem.open("/data/f", create=True)
        disk.faults.slow_ms = 100
        started_ns = filesystem.monotonic_ns()
        file.write([b"abcd"])
        assert filesystem.monotonic_ns() - started_ns == 100_000_000
        started = asyncio.get_running_loop().time()
        await filesystem.run(file.sync)
        assert asyncio.get_running_loop().time() > started

    on_disk(scene)


def test_a_bit_flips_where_it_may() -> None:
    disk = on_disk(write_synced)
    assert disk.flip_bit("/data/", (".log",)) is None
    assert disk.flip_bit("/data/", ("f",)) is not None
    flipped = content(disk, "/data/f")
    assert flipped is not None
    assert (int.from_bytes(flipped, "big") ^ int.from_bytes(b"abcd", "big")).bit_count() == 1
    disk.lose_power()
    assert content(disk, "/data/f") == flipped
