"""Unreadable share state is removed from a partition, with all state that depends on it, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.protocol.control_record import ShareDelta, build_control_batch, encode_delta
from barnabas.protocol.records import iterate_records
from barnabas.share.log_store.partition_state_store import PartitionStateStore
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.errors import ShareStateLost
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig
from barnabas.storage.segments.control_batch import ControlBatch
from tests.cli.log_tool.written_logs import LogCommand
from tests.storage.log_building import (
    NOW_MS,
    TOPIC_ID,
    append,
    append_checkpoint,
    append_control,
    delta_batch,
    values_read,
)
from tests.storage.steady_filesystem import SteadyFileSystem

LOG_NAME = f"{0:020d}.log"


def unreadable(control: ControlBatch, change: Callable[[bytes], bytes]) -> ControlBatch:
    record = next(iterate_records(control.data))
    assert record.key is not None
    assert record.value is not None
    return control._replace(
        data=build_control_batch(record.offset, 0, NOW_MS, record.key, change(record.value))
    )


def delta_behind(offset: int, back_offset: int) -> ControlBatch:
    """A delta of the group that follows the one at `back_offset`."""
    control = delta_batch(offset, 0, "stopped")
    key, value = encode_delta(ShareDelta("stopped", 1, 1, NOW_MS, back_offset, ()))
    return control._replace(data=build_control_batch(offset, 0, NOW_MS, key, value))


async def opened(path: Path) -> tuple[LogDirectory, PartitionLog]:
    directory = await LogDirectory.open(SteadyFileSystem(), str(path), node_id=1, wall_ms=lambda: NOW_MS)
    return directory, await directory.log("orders", 0, TOPIC_ID, LogConfig())


async def written(path: Path, change: Callable[[bytes], bytes] = bytes) -> Path:
    """Records, a checkpoint at 2, a delta at 3 that may be unreadable, one after it, and another group's."""
    directory, log = await opened(path)
    append(log, 2)
    append_checkpoint(log, "stopped")
    append_control(log, lambda offset, _: unreadable(delta_behind(offset, 2), change), NOW_MS)
    append_control(log, lambda offset, _: delta_behind(offset, 3), NOW_MS)
    append_checkpoint(log, "served")
    append(log, 2)
    await directory.close()
    return path / "orders-0"


async def states(path: Path) -> dict[str, int | None]:
    """The offset of each group's last state record, by group; None if the state is lost."""
    directory, log = await opened(path)
    found: dict[str, int | None] = {}
    for group_id in ("stopped", "served"):
        try:
            image = PartitionStateStore(log, lambda: NOW_MS, 10).load(group_id, 1)
        except ShareStateLost:
            found[group_id] = None
        else:
            assert image is not None
            found[group_id] = image.last_control_offset
    assert [offset for offset, _ in values_read(log)] == [0, 1, 6, 7]
    await directory.close()
    return found


def without_end(value: bytes) -> bytes:
    return value[:-1]


async def test_impossible_state_is_dropped_with_the_deltas_after_it(
    log_command: LogCommand, tmp_path: Path
) -> None:
    partition = await written(tmp_path, without_end)
    assert await states(tmp_path) == {"stopped": None, "served": 5}
    exit_code, lines = log_command.run("drop-damaged", partition)
    assert (exit_code, len(lines)) == (0, 3)
    assert "offsets 3 to 3" in lines[0]
    assert "offsets 4 to 4" in lines[1]
    assert "it follows the share state at offset 3" in lines[1]
    assert lines[2] == "orders-0: 2 dropped; the next start makes its indexes again"
    assert await states(tmp_path) == {"stopped": 2, "served": 5}
    assert log_command.run("verify", tmp_path)[0] == 0


async def test_state_with_a_wrong_checksum_is_dropped_with_the_deltas_after_it(
    log_command: LogCommand, tmp_path: Path
) -> None:
    partition = await written(tmp_path)
    content = bytearray((partition / LOG_NAME).read_bytes())
    content[content.index(b"stopped", content.index(b"stopped") + 1)] ^= 1
    (partition / LOG_NAME).write_bytes(content)
    assert await states(tmp_path) == {"stopped": None, "served": 5}
    assert log_command.run("drop-damaged", partition)[0] == 0
    assert await states(tmp_path) == {"stopped": 2, "served": 5}
    assert log_command.run("verify", tmp_path)[0] == 0


async def test_damaged_records_of_clients_stay(log_command: LogCommand, tmp_path: Path) -> None:
    partition = await written(tmp_path)
    content = bytearray((partition / LOG_NAME).read_bytes())
    content[content.rindex(b"value")] ^= 1
    (partition / LOG_NAME).write_bytes(content)
    before = {one.name: one.read_bytes() for one in partition.iterdir()}
    assert log_command.run("drop-damaged", partition) == (
        0,
        ["orders-0: no share state is damaged; the next start makes its indexes again"],
    )
    assert {one.name: one.read_bytes() for one in partition.iterdir()} == before


async def test_with_damaged_records_of_clients_beside_it_it_is_refused(
    log_command: LogCommand, tmp_path: Path
) -> None:
    partition = await written(tmp_path, without_end)
    content = bytearray((partition / LOG_NAME).read_bytes())
    content[content.rindex(b"value")] ^= 1
    (partition / LOG_NAME).write_bytes(content)
    before = {one.name: one.read_bytes() for one in partition.iterdir()}
    exit_code, (line,) = log_command.run("drop-damaged", partition)
    assert (exit_code, "also has damaged records of clients" in line) == (2, True)
    assert {one.name: one.read_bytes() for one in partition.iterdir()} == before


async def test_state_of_a_newer_version_is_refused(
    log_command: LogCommand, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    partition = await written(tmp_path, lambda value: b"\x00\x03" + value[2:])
    before = (partition / LOG_NAME).read_bytes()
    exit_code, _ = log_command.run("drop-damaged", partition)
    assert exit_code == 2
    assert (partition / LOG_NAME).read_bytes() == before
