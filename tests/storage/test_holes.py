"""Segments with gaps between them: losses by a power failure, and allowed gaps."""

from __future__ import annotations

from random import Random

import pytest
from structlog.typing import EventDict

from barnabas.storage.directory.checkpoints import CLEANED_FILE, RECOVERY_POINT_FILE
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.format.checkpoint_file import encode_offsets
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig
from tests.storage.log_building import (
    DIRECTORY,
    NOW_MS,
    TOPIC_ID,
    append,
    append_checkpoint,
    append_deltas,
    base_offsets_read,
    open_log,
)
from tests.storage.memory_filesystem import MemoryFileSystem
from tests.storage.transactions import Producer, committed_read

SMALL = LogConfig(segment_bytes=200)
"""Two batches in each segment."""


def log_path(base_offset: int) -> str:
    return f"{DIRECTORY}/{base_offset:020d}.log"


def segment_names(filesystem: MemoryFileSystem) -> list[int]:
    return [
        int(path.rpartition("/")[2].removesuffix(".log"))
        for path in sorted(filesystem.files)
        if path.endswith(".log")
    ]


async def of_eight(filesystem: MemoryFileSystem) -> PartitionLog:
    """A log of four segments; a flush has made only the first record durable."""
    log = await open_log(filesystem, config=SMALL)
    append(log)
    await log.flush()
    for _ in range(7):
        append(log)
    assert segment_names(filesystem) == [0, 2, 4, 6]
    return log


@pytest.mark.parametrize("whole_batches", [0, 1])
@pytest.mark.parametrize("lost", [2, 4])
async def test_the_log_ends_where_something_is_missing(
    lost: int, whole_batches: int, log_lines: list[EventDict]
) -> None:
    filesystem = MemoryFileSystem()
    log = await of_eight(filesystem)
    content = filesystem.files[log_path(lost)]
    del content[len(content) // 2 * whole_batches :]
    again = await open_log(filesystem.copy(), config=SMALL, recovery_point=log.recovery_point)
    end_offset = lost + whole_batches
    assert base_offsets_read(again) == list(range(end_offset))
    assert again.log_end_offset == end_offset
    (line,) = [line for line in log_lines if "does not follow the end" in line["event"]]
    assert line["log_end_offset"] == end_offset
    assert append(again).result().base_offset == end_offset


class NotedFileSystem(MemoryFileSystem):
    """Records the removals of log files, and the syncs of their directory."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[str] = []

    def remove(self, path: str) -> None:
        super().remove(path)
        if path.endswith(".log"):
            self.steps.append(path)

    def sync_directory(self, path: str) -> None:
        super().sync_directory(path)
        self.steps.append(path)


async def test_segments_behind_a_gap_are_removed_for_good() -> None:
    """From the end, and durably: new records must not be joined with segments that come back."""
    filesystem = NotedFileSystem()
    log = await of_eight(filesystem)
    filesystem.files[log_path(2)].clear()
    filesystem.steps.clear()
    again = await open_log(filesystem, config=SMALL, recovery_point=log.recovery_point)
    assert filesystem.steps == [log_path(6), log_path(4), DIRECTORY]
    assert (segment_names(filesystem), again.log_end_offset) == ([0, 2], 2)


async def test_an_aborted_transaction_whose_marker_is_lost_is_not_shown() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=SMALL)
    append(log)
    await log.flush()
    producer = Producer(log, 1)
    producer.send()  # 1
    producer.abort()  # 2, in the next segment
    append(log)
    producer.send()  # 4, in the third
    producer.commit()
    assert segment_names(filesystem) == [0, 2, 4]
    filesystem.files[log_path(2)].clear()
    again = await open_log(filesystem, config=SMALL, recovery_point=log.recovery_point)
    assert (again.log_end_offset, committed_read(again)) == (2, [0])


async def test_lost_state_of_a_share_group_removes_the_state_that_builds_on_it() -> None:
    filesystem = MemoryFileSystem()
    config = LogConfig(segment_bytes=400)
    log = await open_log(filesystem, config=config)
    append_checkpoint(log)
    await log.flush()
    while log.segment_count < 4:
        append_deltas(log)
    first, second = segment_names(filesystem)[:2]
    assert first == 0
    filesystem.files[log_path(second)].clear()
    again = await open_log(filesystem, config=config, recovery_point=log.recovery_point)
    assert again.log_end_offset == second


@pytest.mark.parametrize(("recovery_point", "gaps_until"), [(8, 0), (4, 0), (0, 4), (0, 8)])
async def test_gaps_below_the_recovery_point_are_allowed(recovery_point: int, gaps_until: int) -> None:
    """Apache Kafka's cleaner leaves such gaps."""
    filesystem = MemoryFileSystem()
    log = await of_eight(filesystem)
    await log.close()
    content = filesystem.files[log_path(2)]
    del content[len(content) // 2 :]
    again = await open_log(filesystem, config=SMALL, recovery_point=recovery_point, gaps_until=gaps_until)
    assert base_offsets_read(again) == [0, 1, 2, 4, 5, 6, 7]
    assert again.log_end_offset == 8


@pytest.mark.parametrize(
    ("recovery_point", "cleaned_offset", "left"),
    [
        (1, 8, [0, 1, 4, 5, 6, 7]),
        (8, 0, [0, 1, 4, 5, 6, 7]),
        (1, 0, [0, 1]),
        pytest.param(None, None, [0, 1, 4, 5, 6, 7], id="the files were lost"),
    ],
)
async def test_the_range_of_allowed_gaps_is_read_from_the_checkpoints(
    recovery_point: int | None, cleaned_offset: int | None, left: list[int]
) -> None:
    filesystem = MemoryFileSystem()
    log = await of_eight(filesystem)
    await log.close()
    filesystem.files[log_path(2)].clear()
    for name, offset in ((RECOVERY_POINT_FILE, recovery_point), (CLEANED_FILE, cleaned_offset)):
        offsets = {} if offset is None else {("orders", 0): offset}
        filesystem.files[f"/data/{name}"] = bytearray(encode_offsets(offsets) if offsets else b"damaged")
    directory = await LogDirectory.open(filesystem, "/data", node_id=1, wall_ms=lambda: NOW_MS)
    again = await directory.log("orders", 0, TOPIC_ID, SMALL)
    assert base_offsets_read(again) == left
    await directory.close()


@pytest.mark.seeds(30)
async def test_a_loss_of_power_leaves_the_beginning_of_a_log(seed: int) -> None:
    """Each segment that was not synced keeps all, some or none of its batches, by chance."""
    chance = Random(seed)
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=SMALL)
    for _ in range(20):
        append(log, chance.randrange(1, 3))
        if chance.random() < 0.1:
            await log.flush()
    read = base_offsets_read(log)
    for base_offset in segment_names(filesystem):
        path = log_path(base_offset)
        content, synced = filesystem.files[path], filesystem.synced.get(path, b"")
        del content[chance.choice((len(synced), len(content), chance.randint(len(synced), len(content)))) :]
    again = await open_log(filesystem, config=SMALL, recovery_point=log.recovery_point)
    left = base_offsets_read(again)
    assert left == read[: len(left)]
    assert again.log_end_offset >= log.durable_offset
    assert segment_names(filesystem)[-1] <= again.log_end_offset
