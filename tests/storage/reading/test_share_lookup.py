"""Look-ups in the share indexes of several segments."""

from __future__ import annotations

import errno

import pytest

from barnabas.protocol.control_record import ControlType
from barnabas.storage.format.share_index import group_hash
from barnabas.storage.log_config import LogConfig
from barnabas.storage.reading.share_lookup import (
    holds_share_state_below,
    is_checkpoint_of,
    load_control_runs,
    newest_checkpoints,
    newest_entries,
)
from barnabas.storage.recovery.log_recovery import load_log
from barnabas.storage.segments.segments import Segments
from tests.storage.log_building import (
    COLLIDING,
    MOMENT,
    append,
    append_checkpoint,
    append_deltas,
    open_log,
    place_of,
)
from tests.storage.memory_filesystem import MemoryFileSystem

FIRST, SECOND = COLLIDING


async def closed_segments(filesystem: MemoryFileSystem, *, segment_bytes: int = 300) -> Segments:
    """Control records at 0, 2, 3, 5, 7 and 8, in several segments; no old index is in memory."""
    config = LogConfig(segment_bytes=segment_bytes)
    log = await open_log(filesystem, config=config)
    append_checkpoint(log, FIRST)
    append(log)
    append_checkpoint(log, SECOND)
    append_deltas(log, group_id=FIRST)
    append(log)
    append_checkpoint(log, FIRST)
    append(log)
    append_deltas(log, group_id=SECOND)
    append_checkpoint(log, "gone", deleted=True)
    append(log)
    await log.close()
    return await segments_of(filesystem, config, log.recovery_point)


async def segments_of(filesystem: MemoryFileSystem, config: LogConfig, recovery_point: int) -> Segments:
    place = place_of(filesystem, config=config, recovery_point=recovery_point)
    return (await load_log(place, leader_epoch=0, moment=MOMENT)).segments


async def test_groups_that_share_a_hash_are_distinguished_by_their_records() -> None:
    segments = await closed_segments(MemoryFileSystem())
    assert len(segments) > 3
    newest = newest_checkpoints(reversed(segments))
    assert {group_id: (entry.offset, entry.tombstone) for group_id, entry in newest.items()} == {
        FIRST: (5, False),
        SECOND: (2, False),
        "gone": (8, True),
    }


async def test_entries_come_from_the_end_of_the_log_down() -> None:
    segments = await closed_segments(MemoryFileSystem())
    entries = list(newest_entries(segments, group_hash(FIRST)))
    assert [entry.offset for entry in entries] == [7, 5, 3, 2, 0]
    assert entries[0].kind == ControlType.SHARE_DELTA


async def test_segments_below_an_offset_are_not_read() -> None:
    filesystem = MemoryFileSystem()
    segments = await closed_segments(filesystem)
    filesystem.read_count = 0
    entries = list(newest_entries(segments, group_hash(FIRST), down_to_offset=5))
    assert [entry.offset for entry in entries if entry.offset >= 5] == [7, 5]
    assert 0 not in {entry.offset for entry in entries}
    some_count = filesystem.read_count
    filesystem.read_count = 0
    list(newest_entries(segments, group_hash(FIRST)))
    assert some_count < filesystem.read_count


@pytest.mark.parametrize(
    ("offset", "group_id", "is_there"),
    [(5, FIRST, True), (5, SECOND, False), (3, FIRST, False), (8, "gone", False), (4, FIRST, False)],
)
async def test_a_checkpoint_is_one_of_that_group_and_no_tombstone(
    offset: int, group_id: str, is_there: bool
) -> None:
    segments = await closed_segments(MemoryFileSystem())
    assert is_checkpoint_of(segments.floor(offset), offset, group_id) is is_there


async def test_look_ups_keep_nothing_in_memory() -> None:
    filesystem = MemoryFileSystem()
    segments = await closed_segments(filesystem)
    for _ in range(2):
        filesystem.read_count = 0
        list(newest_entries(segments, group_hash("unknown")))
        assert filesystem.read_count > 0


async def test_an_error_of_reading_an_index_names_its_file() -> None:
    filesystem = MemoryFileSystem()
    segments = await closed_segments(filesystem)
    filesystem.read_error = errno.EIO
    with pytest.raises(OSError, match="shareindex"):
        list(newest_entries(segments, group_hash(FIRST)))


async def test_runs_of_old_segments_are_loaded_on_demand() -> None:
    segments = await closed_segments(MemoryFileSystem())
    runs = load_control_runs(segments, segments.active.base_offset)
    assert runs.known_from > 3
    assert runs.data_ranges(0, 9) == [(1, 1), (4, 4), (6, 6), (9, 9)]
    assert runs.known_from == 0


async def test_a_segment_that_extends_into_the_known_range_gives_no_run_twice() -> None:
    """The cleaner may have merged several segments, some of them already loaded."""
    segments = await closed_segments(MemoryFileSystem())
    runs = load_control_runs(segments, segments.active.base_offset)
    runs.know_from(5)
    assert 0 < runs.known_from <= 5
    (whole,) = await closed_segments(MemoryFileSystem(), segment_bytes=10_000)
    segments.replace(list(segments)[:-1], whole)
    assert runs.data_ranges(0, 9) == [(1, 1), (4, 4), (6, 6), (9, 9)]


async def test_segments_without_share_state_are_known_to_have_none() -> None:
    filesystem, config = MemoryFileSystem(), LogConfig(segment_bytes=200)
    log = await open_log(filesystem, config=config)
    for _ in range(10):
        append(log)
    await log.close()
    segments = await segments_of(filesystem, config, log.recovery_point)
    assert not holds_share_state_below(segments, log.log_end_offset)
    assert len(load_control_runs(segments, segments.active.base_offset)) == 0
