"""Damaged data is removed from a coordinator's log, and from no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.protocol.record_batch import iterate_headers
from barnabas.protocol.records import iterate_records
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.errors import CorruptBatch
from barnabas.storage.log_config import LogConfig
from tests.cli.log_tool.written_logs import FIRST, LogCommand, batch_positions, spoil
from tests.storage.log_building import NOW_MS, TOPIC_ID
from tests.storage.steady_filesystem import SteadyFileSystem

TOPIC = "__consumer_offsets"
CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=1)
RECORDS = [(b"key %d" % number, b"value") for number in range(12)]


async def opened(path: Path) -> LogDirectory:
    return await LogDirectory.open(SteadyFileSystem(), str(path), node_id=1, wall_ms=lambda: NOW_MS)


@pytest.fixture
async def partition(tmp_path: Path) -> Path:
    """The directory of a partition in several segments, with one record per batch."""
    directory = await opened(tmp_path / "data")
    log = await directory.log(TOPIC, 3, TOPIC_ID, CONFIG)
    for record in RECORDS:
        await log.append_records([record], NOW_MS)
    assert log.segment_count > 2
    await directory.close()
    return tmp_path / "data" / f"{TOPIC}-3"


def flip(partition: Path, *offsets: int, at: int = 64) -> None:
    """Damages the batches at these offsets, which are in one segment."""
    base_offset = max(int(one.stem) for one in partition.glob("*.log") if int(one.stem) <= offsets[0])
    segment = partition / f"{base_offset:020d}.log"
    positions = batch_positions(segment)

    def change(content: bytearray) -> None:
        for offset in offsets:
            content[positions[offset] + at] ^= 0x40

    spoil(segment, change)


def files_in(partition: Path) -> dict[str, bytes]:
    """The content of the directory's files, by name."""
    return {one.name: one.read_bytes() for one in partition.iterdir()}


async def keys(partition: Path) -> list[bytes | None]:
    """The keys of all records in the log, opened again."""
    directory = await opened(partition.parent)
    log = await directory.log(TOPIC, 3, TOPIC_ID, CONFIG)
    found: list[bytes | None] = []
    offset = 0
    try:
        while offset < log.high_watermark:
            data = b"".join(log.read(offset, bytes_max=2**20).buffers)
            if not data:
                break
            for position, header in iterate_headers(data):
                found += [one.key for one in iterate_records(data, position)]
                offset = header.last_offset + 1
    finally:
        await directory.close()
    return found


@pytest.mark.parametrize("at", [64, 8], ids=["in its record", "in its size"])
async def test_all_batches_but_the_damaged_one_are_read_again(
    log_command: LogCommand, partition: Path, at: int
) -> None:
    flip(partition, 1, at=at)
    with pytest.raises(CorruptBatch):
        await keys(partition)
    before = files_in(partition)
    exit_code, (line, outcome) = log_command.run("drop-damaged", partition)
    assert exit_code == 0
    after = files_in(partition)
    (kept,) = [name for name in after if ".damaged-" in name]
    position = int(kept.rpartition("-")[2])
    assert after[kept] == before[f"{FIRST}.log"][position : position + len(after[kept])]
    assert f"{TOPIC}-3/{FIRST}.log, position {position}, offsets 1 to 1: " in line
    assert line.endswith(f"; they are in {kept}")
    assert outcome == f"{TOPIC}-3: 1 dropped; the next start makes its indexes again"
    assert await keys(partition) == [key for key, _ in RECORDS if key != b"key 1"]
    assert log_command.run("verify", partition)[0] == 0


@pytest.mark.parametrize("at", [4, 6, 7], ids="in byte {} of its base offset".format)
async def test_the_last_batch_of_a_segment_may_not_reach_into_the_next(
    log_command: LogCommand, partition: Path, at: int
) -> None:
    flip(partition, 3, at=at)
    with pytest.raises(CorruptBatch):
        await keys(partition)
    _, (line, _) = log_command.run("drop-damaged", partition)
    assert f"{TOPIC}-3/{FIRST}.log, position 234, offsets 3 to 3: 78 bytes dropped: " in line
    assert await keys(partition) == [key for key, _ in RECORDS if key != b"key 3"]
    assert log_command.run("verify", partition)[0] == 0


async def test_bytes_after_the_last_offset_of_a_segment_are_dropped(
    log_command: LogCommand, partition: Path
) -> None:
    with (partition / f"{FIRST}.log").open("ab") as segment:
        segment.write(b"junk")
    _, (line, _) = log_command.run("drop-damaged", partition)
    assert f"{FIRST}.log, position 312, no offsets: 4 bytes dropped: " in line
    assert await keys(partition) == [key for key, _ in RECORDS]


async def test_the_end_of_the_log_may_be_dropped(log_command: LogCommand, partition: Path) -> None:
    flip(partition, 7)
    flip(partition, 8, 9, 10, 11)
    _, lines = log_command.run("drop-damaged", partition)
    assert [line.split(", ")[2].partition(":")[0] for line in lines[:2]] == [
        "offsets 7 to 7",
        "offsets from 8 on",
    ]
    assert await keys(partition) == [key for key, _ in RECORDS[:7]]


async def test_bytes_kept_by_an_earlier_run_stay(log_command: LogCommand, partition: Path) -> None:
    segment = partition / f"{FIRST}.log"
    batches = [segment.read_bytes()[number * 78 :][:78] for number in range(4)]
    damaged = [batch[:64] + bytes([batch[64] ^ 0x40]) + batch[65:] for batch in batches]
    for offset in (0, 1, 2):
        flip(partition, offset)
        log_command.run("drop-damaged", partition)
        await keys(partition)  # This makes the indexes again.
    after = files_in(partition)
    kept = {name: content for name, content in after.items() if ".damaged-" in name}
    assert kept == {
        f"{FIRST}.log.damaged-0": damaged[0],
        f"{FIRST}.log.damaged-0-2": damaged[1],
        f"{FIRST}.log.damaged-0-3": damaged[2],
    }
    assert after[f"{FIRST}.log"] == batches[3]


async def test_after_a_crash_the_same_bytes_are_kept_once(log_command: LogCommand, partition: Path) -> None:
    flip(partition, 1)
    before = files_in(partition)
    log_command.run("drop-damaged", partition)
    after = files_in(partition)
    for name, content in before.items():
        (partition / name).write_bytes(content)
    log_command.run("drop-damaged", partition)
    assert files_in(partition) == after


async def test_nothing_is_removed_from_a_good_log(log_command: LogCommand, partition: Path) -> None:
    _, (outcome,) = log_command.run("drop-damaged", partition)
    assert outcome == f"{TOPIC}-3: nothing is damaged; the next start makes its indexes again"
    assert await keys(partition) == [key for key, _ in RECORDS]


async def test_wrong_indexes_are_removed_too(log_command: LogCommand, partition: Path) -> None:
    index = partition / f"{FIRST}.index"
    index.write_bytes(index.read_bytes()[:-8] + bytes([0, 0, 0, 90, 0, 0, 0, 1]))
    log_command.run("drop-damaged", partition)
    assert not index.exists()
    assert await keys(partition) == [key for key, _ in RECORDS]


async def test_a_dropped_range_is_printed_as_json(log_command: LogCommand, partition: Path) -> None:
    flip(partition, 1)
    (row,) = log_command.rows("drop-damaged", partition)
    assert (row["type"], row["from_offset"], row["to_offset"]) == ("dropped", 1, 2)
    assert len(files_in(partition)[row["kept"].rpartition("/")[2]]) == row["size_bytes"]


async def test_a_directory_in_use_is_refused(log_command: LogCommand, partition: Path) -> None:
    directory = await opened(partition.parent)
    before = files_in(partition)
    exit_code, (line,) = log_command.run("drop-damaged", partition)
    await directory.close()
    assert (exit_code, files_in(partition)) == (2, before)
    assert "is used by a running broker" in line


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("__cluster_metadata-0", "is the metadata log, from which nothing can be removed"),
        ("", "Name the directory of one partition."),
        (f"{TOPIC}-3/{FIRST}.log", "Name the directory of one partition."),
    ],
)
async def test_other_partitions_and_paths_are_refused(
    log_command: LogCommand, partition: Path, name: str, told: str
) -> None:
    data = partition.parent
    (data / "__cluster_metadata-0").mkdir()
    (data / "__cluster_metadata-0" / f"{FIRST}.log").write_bytes((partition / f"{FIRST}.log").read_bytes())
    exit_code, (line,) = log_command.run("drop-damaged", data / name)
    assert exit_code == 2
    assert told in line
