"""Reads of batches that another process wrote: verified once, damage is refused and never skipped."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable

import pytest
from structlog.typing import EventDict

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.record_batch import seal_batch
from barnabas.storage.errors import CorruptBatch
from barnabas.storage.format.share_index import ShareIndex
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig
from barnabas.storage.reading.reader import _VERIFIED_MAX
from barnabas.storage.segments.segment import Segment
from tests.storage.damaged_logs import (
    END_OFFSET,
    INDEXED,
    LOG_PATH,
    OFFSETS,
    VALUES,
    batch_starts,
    fetch,
    reopened,
    share_fetch,
    spoil,
    written_log,
)
from tests.storage.log_building import (
    DIRECTORY,
    NOW_MS,
    append,
    append_deltas,
    max_timestamp,
    offset_for_timestamp,
    open_log,
    validated,
    values_read,
)
from tests.storage.memory_filesystem import MemoryFileSystem

Fetch = Callable[[PartitionLog, int], list[tuple[int, bytes | None]]]
SPARSE = LogConfig()
"""A log of this size has no entry in its offset index."""
BATCH_OF_OFFSET_4 = 4

each_fetch = pytest.mark.parametrize("read", [fetch, share_fetch])


def active_segment(log: PartitionLog) -> Segment:
    return log.state.segments.active


# Trusted batches.


async def test_batches_of_this_process_are_trusted() -> None:
    log = await open_log(MemoryFileSystem())
    append(log)
    assert active_segment(log).unverified_end == 0


async def test_batches_that_recovery_scanned_are_trusted() -> None:
    log = await open_log(await written_log(), config=INDEXED, recovery_point=0)
    assert active_segment(log).unverified_end == 0


async def test_durable_batches_are_distrusted_until_they_are_read() -> None:
    log = await reopened(await written_log())
    segment = active_segment(log)
    assert segment.unverified_end == segment.size_bytes
    assert values_read(log) == VALUES
    assert segment.unverified_end == 0


async def test_trust_grows_from_the_end_down() -> None:
    filesystem = await written_log()
    log = await reopened(filesystem)
    assert fetch(log, 6) == VALUES[4:]
    assert 0 < active_segment(log).unverified_end <= batch_starts(filesystem)[6]
    assert fetch(log, 0) == VALUES
    assert active_segment(log).unverified_end == 0


async def test_later_appends_are_trusted_even_if_older_batches_are_not() -> None:
    log = await reopened(await written_log())
    old_bytes = active_segment(log).size_bytes
    append(log, value=b"new")
    assert active_segment(log).unverified_end == old_bytes
    assert fetch(log, 7) == [VALUES[-1], (8, b"new")]


@each_fetch
async def test_a_checksum_is_computed_once(read: Fetch) -> None:
    filesystem = await written_log()
    log = await reopened(filesystem)
    assert [offset for offset, _ in share_fetch(log, 0)] == OFFSETS
    filesystem.files[LOG_PATH][12] ^= 1  # the leader epoch, which no checksum covers
    assert read(log, 0) == VALUES


async def test_readers_at_two_places_verify_each_batch_once() -> None:
    log = await reopened(await written_log())
    for offset in (0, 6, 1, 7, 4, 5):
        assert len(log.read(offset, bytes_max=1).buffers) == 1
    assert active_segment(log).unverified_end == 0


@each_fetch
async def test_a_read_verifies_a_bounded_number_of_batches(read: Fetch) -> None:
    values = [(offset, b"") for offset in range(_VERIFIED_MAX + 10)]
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem)
    for _ in values:
        append(log, value=b"")
    await log.close()
    log = await reopened(filesystem, SPARSE, len(values))
    found = read(log, 0)
    assert len(found) <= _VERIFIED_MAX
    while len(found) < len(values):
        found += read(log, len(found))
    assert found == values


# Damaged batches.


@each_fetch
async def test_a_bad_batch_is_refused_and_the_batches_around_it_are_served(read: Fetch) -> None:
    filesystem = await written_log()
    spoil(filesystem, BATCH_OF_OFFSET_4)
    log = await reopened(filesystem)
    assert read(log, 0) == VALUES[:2]
    for offset in (2, 3, 4):  # a group at offset 2 needs the batch at 4
        with pytest.raises(
            CorruptBatch, match=r"The batch at \d+ of .*\.log is damaged: its checksum does not match"
        ):
            read(log, offset)
    assert read(log, 5) == VALUES[3:]


@each_fetch
async def test_a_bad_batch_is_refused_without_index_entries_too(read: Fetch) -> None:
    filesystem = await written_log(SPARSE)
    spoil(filesystem, BATCH_OF_OFFSET_4)
    log = await reopened(filesystem, SPARSE)
    assert read(log, 0) == VALUES[:2]
    with pytest.raises(CorruptBatch):
        read(log, 4)
    assert read(log, 5) == VALUES[3:]


@each_fetch
@pytest.mark.parametrize("length_byte", [0x00, 0x7F, 0xFF])
async def test_a_size_that_points_nowhere_hides_only_its_own_batch(read: Fetch, length_byte: int) -> None:
    filesystem = await written_log()
    start = batch_starts(filesystem)[BATCH_OF_OFFSET_4]
    filesystem.files[LOG_PATH][start + 8 : start + 12] = bytes([length_byte] * 4)
    log = await reopened(filesystem)
    assert read(log, 1) == VALUES[1:2]
    with pytest.raises(CorruptBatch):
        read(log, 4)
    assert read(log, 5) == VALUES[3:]


@each_fetch
async def test_without_index_entries_a_lost_way_hides_the_rest_of_the_segment(read: Fetch) -> None:
    filesystem = await written_log(LogConfig(index_interval_bytes=1, segment_bytes=400))
    path = f"{DIRECTORY}/{4:020d}.log"
    assert path in filesystem.files
    filesystem.files[LOG_PATH.replace(".log", ".index")].clear()
    filesystem.files[LOG_PATH][11] ^= 0xFF
    log = await reopened(filesystem, SPARSE)
    for offset in (0, 1):
        with pytest.raises(CorruptBatch):
            read(log, offset)
    assert read(log, 4) == VALUES[2:]


@each_fetch
async def test_a_zeroed_page_is_damage(read: Fetch) -> None:
    filesystem = await written_log()
    starts = batch_starts(filesystem)
    filesystem.files[LOG_PATH][starts[1] + 20 : starts[5] + 20] = bytes(starts[5] - starts[1])
    log = await reopened(filesystem)
    assert read(log, 0) == VALUES[:1]
    for offset in (1, 2, 4, 5):
        with pytest.raises(CorruptBatch):
            read(log, offset)
    assert read(log, 6) == VALUES[4:]


@each_fetch
@pytest.mark.parametrize("lost_bytes", [1, 140, 200, 300])
async def test_an_old_segment_that_was_cut_short_is_damaged_where_it_ends(
    read: Fetch, lost_bytes: int
) -> None:
    config = LogConfig(index_interval_bytes=1, segment_bytes=400)
    filesystem = await written_log(config)
    del filesystem.files[LOG_PATH][-lost_bytes:]
    log = await reopened(filesystem, config)
    assert read(log, 0)[0] == VALUES[0]
    assert read(log, 4) == VALUES[2:]
    damaged = [offset for offset in (1, 2, 3) if is_refused(read, log, offset)]
    assert damaged == ([1] if lost_bytes == 300 else []), "2 and 3 are share state"


def is_refused(read: Fetch, log: PartitionLog, offset: int) -> bool:
    try:
        read(log, offset)
    except CorruptBatch:
        return True
    return False


@each_fetch
async def test_damaged_share_state_does_not_disturb_consumers(read: Fetch) -> None:
    filesystem = await written_log()
    spoil(filesystem, 2)
    spoil(filesystem, 3, at=9)
    log = await reopened(filesystem)
    assert read(log, 0) == VALUES
    assert log.corrupt_batch_count == 0


@each_fetch
async def test_an_index_entry_that_points_into_a_batch_is_passed_over(read: Fetch) -> None:
    filesystem = await written_log()
    filesystem.files[LOG_PATH.replace(".log", ".index")][3 * 8 + 7] ^= 4
    log = await reopened(filesystem)
    assert [read(log, offset)[0][0] for offset in OFFSETS] == OFFSETS


@each_fetch
async def test_share_state_that_the_index_puts_in_the_midst_of_data_cuts_nothing_out(read: Fetch) -> None:
    filesystem = await written_log()
    filesystem.files[LOG_PATH.replace(".log", ".shareindex")][7] ^= 8
    log = await reopened(filesystem)
    for offset in OFFSETS:
        try:
            assert read(log, offset) == [one for one in VALUES if one[0] >= offset][: len(read(log, offset))]
        except CorruptBatch as error:
            assert "the share index says something else" in str(error)


async def test_bytes_up_to_a_bad_batch_are_not_waited_beyond() -> None:
    filesystem = await written_log(SPARSE)
    spoil(filesystem, BATCH_OF_OFFSET_4)
    log = await reopened(filesystem, SPARSE)
    assert log.available_bytes(0, upper_offset=4, enough=10_000) == 10_000
    with pytest.raises(CorruptBatch):
        log.available_bytes(4, enough=10_000)


async def test_a_look_up_by_time_that_meets_a_bad_batch_is_refused() -> None:
    filesystem = await written_log()
    spoil(filesystem, BATCH_OF_OFFSET_4)
    log = await reopened(filesystem)
    assert await offset_for_timestamp(log, NOW_MS + 1) == (NOW_MS + 1, 1)
    with pytest.raises(CorruptBatch):
        await offset_for_timestamp(log, NOW_MS + 4)
    assert await offset_for_timestamp(log, NOW_MS + 6) == (NOW_MS + 6, 6)
    assert await max_timestamp(log) == (NOW_MS + 7, 7)


async def test_undecodable_records_are_refused_by_time_and_served_by_offset() -> None:
    """Produced records are never decoded: the checksum can be right and the records nonsense."""
    nonsense = seal_batch(
        b"\xff" * 10,
        base_offset=0,
        leader_epoch=-1,
        attributes=0,
        last_offset_delta=0,
        base_timestamp_ms=NOW_MS,
        max_timestamp_ms=NOW_MS,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=1,
    )
    log = await open_log(MemoryFileSystem())
    log.append_produced(nonsense, validated(nonsense), NOW_MS)
    with pytest.raises(CorruptBatch):
        await offset_for_timestamp(log, NOW_MS)
    with pytest.raises(CorruptBatch):
        await max_timestamp(log)
    assert log.read(0, bytes_max=1000).size_bytes == len(nonsense)


async def test_each_bad_batch_is_logged_and_counted_once(log_lines: list[EventDict]) -> None:
    filesystem = await written_log()
    spoil(filesystem, BATCH_OF_OFFSET_4)
    spoil(filesystem, 6)
    log = await reopened(filesystem)
    log_lines.clear()
    for offset in (4, 4, 6, 4):
        with pytest.raises(CorruptBatch) as refusal:
            fetch(log, offset)
        assert refusal.value.code is ErrorCode.corrupt_message
    assert log.corrupt_batch_count == 2
    starts = batch_starts(filesystem)
    assert [(line["log_level"], line["segment"], line["position"]) for line in log_lines] == [
        ("error", LOG_PATH, starts[BATCH_OF_OFFSET_4]),
        ("error", LOG_PATH, starts[6]),
    ]


async def test_a_file_that_lost_its_end_while_it_is_open_is_damaged() -> None:
    filesystem = await written_log()
    log = await reopened(filesystem)
    del filesystem.files[LOG_PATH][batch_starts(filesystem)[6] :]
    assert fetch(log, 0) == VALUES[:4]
    with pytest.raises(CorruptBatch):
        fetch(log, 6)
    assert log.log_end_offset == END_OFFSET


async def test_a_walk_past_share_state_looks_at_each_batch_of_a_run_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem)
    append(log)
    append_deltas(log, 50, "group")
    append(log)
    await log.flush()
    again = await open_log(filesystem.copy())

    def refuse(_: ShareIndex, position: int) -> int:
        raise AssertionError(f"the run at {position} is gone through for one of its batches")

    monkeypatch.setattr(ShareIndex, "end_of_run", refuse)
    walked = [header.base_offset for _, header in again._reader.verification.walk(active_segment(again), 0)]
    assert walked == [0, 51]


# The way on behind damage.


async def test_reading_can_go_on_behind_a_bad_batch() -> None:
    filesystem = await written_log()
    spoil(filesystem, BATCH_OF_OFFSET_4)
    log = await reopened(filesystem)
    for offset in (2, 3, 4):
        assert log.offset_behind_damage(offset) == 5
    assert share_fetch(log, 5) == VALUES[3:]


async def test_reading_can_go_on_behind_several_bad_batches() -> None:
    filesystem = await written_log()
    starts = batch_starts(filesystem)
    filesystem.files[LOG_PATH][starts[1] + 20 : starts[5] + 20] = bytes(starts[5] - starts[1])
    log = await reopened(filesystem)
    assert log.offset_behind_damage(1) == 6


async def test_reading_can_go_on_with_the_next_segment_if_the_way_is_lost() -> None:
    filesystem = await written_log(LogConfig(index_interval_bytes=1, segment_bytes=400))
    filesystem.files[LOG_PATH.replace(".log", ".index")].clear()
    filesystem.files[LOG_PATH][11] ^= 0xFF
    log = await reopened(filesystem, SPARSE)
    assert log.offset_behind_damage(0) == 4


async def test_behind_a_bad_last_batch_is_the_end_of_the_log() -> None:
    filesystem = await written_log()
    spoil(filesystem, END_OFFSET - 1)
    log = await reopened(filesystem)
    assert log.offset_behind_damage(END_OFFSET - 1) == END_OFFSET
