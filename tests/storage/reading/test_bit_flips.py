"""The bits of a small log flipped, one at a time: each read returns the written records, or is refused.

The checksum does not cover the leader epoch, whose errors cannot be detected, and the base offset, whose
errors show by the neighbouring batches. The index files have no checksums. Each bit that no checksum covers
is flipped, and one bit of each other byte: a checksum finds any of them in the same way.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator

import pytest
from structlog.typing import EventDict

from barnabas.storage.errors import CorruptBatch
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig
from barnabas.storage.reading.verification import Verification, distrust_durable
from tests.storage.damaged_logs import INDEXED, LOG_PATH, batch_starts, fetch, share_fetch
from tests.storage.damaged_logs import VALUES as MORE_VALUES
from tests.storage.damaged_logs import reopened as reopened_at
from tests.storage.damaged_logs import written_log as log_with
from tests.storage.log_building import NOW_MS, offset_for_timestamp, open_log, values_read
from tests.storage.memory_filesystem import MemoryFileSystem

Fetch = Callable[[PartitionLog, int], list[tuple[int, bytes | None]]]

VALUES = MORE_VALUES[:-1]
"""The records of the log, two before share state and three behind it. More would only take longer."""
OFFSETS = [offset for offset, _ in VALUES]
END_OFFSET = OFFSETS[-1] + 1
BATCH_OFFSETS = list(range(END_OFFSET))
"""The base offset of each batch in the file."""
LEADER_EPOCH = range(12, 16)
BASE_OFFSET = range(8)
LENGTH = range(8, 12)
CHECKED_FROM = 21
"""The checksum of a batch covers its bytes from here on."""
SPARSE = LogConfig()
"""A log of this size has no entry in its offset index."""


@pytest.fixture(autouse=True)
def quiet(log_lines: list[EventDict]) -> None:
    """Keeps the line about each flip out of the output."""


async def written_log(config: LogConfig = INDEXED) -> MemoryFileSystem:
    return await log_with(config, VALUES)


async def reopened(filesystem: MemoryFileSystem, config: LogConfig = INDEXED) -> PartitionLog:
    return await reopened_at(filesystem, config, END_OFFSET)


def flips(content: bytearray, starts: list[int]) -> Iterator[tuple[int, int]]:
    """Flips a bit, yields (position, bit), and flips it back. The batches begin at `starts`; content without
    batches has no checksums.
    """
    for position in range(len(content)):
        is_checked = bool(starts) and batch_of(starts, position)[1] >= CHECKED_FROM
        for number in (position % 8,) if is_checked else range(8):
            content[position] ^= 1 << number
            yield position, 1 << number
            content[position] ^= 1 << number


def batch_of(starts: list[int], position: int) -> tuple[int, int]:
    """(number of the batch, position in it) of a position in the file."""
    number = sum(start <= position for start in starts) - 1
    return number, position - starts[number]


def forget_what_was_checked(log: PartitionLog) -> None:
    log._reader.forget_positions()
    log._reader.verification = Verification(log.state)
    distrust_durable(log.state)


def served_from(log: PartitionLog, offset: int) -> list[tuple[int, bytes | None]] | None:
    """The records of both kinds of reads, which must be equal; None if they are refused."""
    by_fetch, by_share_fetch = (outcome(read, log, offset) for read in (fetch, share_fetch))
    assert by_fetch == by_share_fetch, offset
    return by_fetch


def outcome(read: Fetch, log: PartitionLog, offset: int) -> list[tuple[int, bytes | None]] | None:
    """The records of a read; None if it is refused."""
    try:
        return read(log, offset)
    except CorruptBatch:
        return None


async def flipped_logs() -> AsyncGenerator[tuple[PartitionLog, int, int, int | None]]:
    """A log with each flipped bit: the position in its file, the bit, and the offset of the batch with it.
    The offset is None if no checksum covers the bit.
    """
    filesystem = await written_log()
    starts = batch_starts(filesystem)
    log = await reopened(filesystem)
    for position, bit in flips(filesystem.files[LOG_PATH], starts):
        forget_what_was_checked(log)
        number, inside = batch_of(starts, position)
        yield log, position, bit, None if inside in LEADER_EPOCH else BATCH_OFFSETS[number]


async def test_a_flipped_bit_is_found_when_it_is_read() -> None:
    async for log, position, bit, bad_offset in flipped_logs():
        for offset in OFFSETS:
            expected = [one for one in VALUES if one[0] >= offset]
            if bad_offset in OFFSETS and bad_offset >= offset:
                expected = [one for one in expected if one[0] < bad_offset]
            assert served_from(log, offset) == (expected or None), (position, bit, offset)


async def test_reading_goes_on_behind_the_batch_with_a_flipped_bit() -> None:
    async for log, position, bit, _ in flipped_logs():
        for offset in OFFSETS:
            if outcome(share_fetch, log, offset) is None:
                behind = log.offset_behind_damage(offset)
                assert behind > offset, (position, bit)
                expected = [one for one in VALUES if one[0] >= behind]
                assert outcome(share_fetch, log, behind) == expected, (position, bit, offset)
                assert len(expected) == sum(one > offset for one in OFFSETS), (position, bit, offset)


async def test_a_look_up_by_time_finds_the_written_records_or_refuses() -> None:
    async for log, position, bit, bad_offset in flipped_logs():
        for offset in OFFSETS:
            try:
                found = await offset_for_timestamp(log, NOW_MS + offset)
            except CorruptBatch:
                assert bad_offset in OFFSETS, (position, bit)
            else:
                assert found == (NOW_MS + offset, offset) and offset != bad_offset, (position, bit)


async def test_a_flipped_bit_behind_the_recovery_point_ends_the_log_there() -> None:
    filesystem = await written_log()
    starts = batch_starts(filesystem)
    content = filesystem.files[LOG_PATH]
    for position, bit in flips(content, starts):
        number, inside = batch_of(starts, position)
        log = await open_log(filesystem.copy(), config=INDEXED)
        if inside in LEADER_EPOCH:
            assert values_read(log) == VALUES, (position, bit)
        elif number == len(starts) - 1 and inside in BASE_OFFSET:
            assert values_read(log)[: len(OFFSETS) - 1] == VALUES[:-1], "nothing follows that could tell"
        else:
            assert log.log_end_offset == BATCH_OFFSETS[number], (position, bit)
            assert values_read(log) == [one for one in VALUES if one[0] < BATCH_OFFSETS[number]]


@pytest.mark.parametrize("config", [INDEXED, SPARSE], ids=["indexed", "sparse"])
async def test_a_flipped_bit_in_a_durable_batch_costs_only_that_batch(config: LogConfig) -> None:
    """It is found at the start or by a read, depending on the index entry at which the scan begins."""
    filesystem = await written_log(config)
    starts = batch_starts(filesystem)
    content = filesystem.files[LOG_PATH]
    for position, bit in flips(content, starts):
        number, inside = batch_of(starts, position)
        if config is SPARSE and inside in LENGTH:
            continue  # without an index the batches behind it cannot be found
        log = await reopened(filesystem.copy(), config)
        if number == len(starts) - 1 and inside not in LEADER_EPOCH:
            is_kept = log.log_end_offset == END_OFFSET
            assert is_kept or inside in (*BASE_OFFSET, *LENGTH), (position, bit)
            assert fetch(log, 0)[: len(OFFSETS) - 1] == VALUES[:-1], (position, bit)
            continue
        bad_offset = None if inside in LEADER_EPOCH else BATCH_OFFSETS[number]
        assert (log.log_end_offset, log.high_watermark) == (END_OFFSET, END_OFFSET), (position, bit)
        for offset in OFFSETS:
            expected = [one for one in VALUES if one[0] >= offset]
            if bad_offset in OFFSETS and bad_offset >= offset:
                expected = [one for one in expected if one[0] < bad_offset]
            assert served_from(log, offset) == (expected or None), (position, bit, offset)


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".shareindex"])
async def test_no_flipped_bit_in_an_index_returns_wrong_records(suffix: str) -> None:
    filesystem = await written_log()
    for position, bit in flips(filesystem.files[LOG_PATH.replace(".log", suffix)], starts=[]):
        log = await reopened(filesystem.copy())
        assert log.log_end_offset == END_OFFSET, (position, bit)
        for offset in OFFSETS:
            for read in (fetch, share_fetch):
                served = outcome(read, log, offset) or []
                expected = [one for one in VALUES if one[0] >= offset]
                assert served == expected[: len(served)], (position, bit, offset)
            if outcome(share_fetch, log, offset) is None:
                assert log.offset_behind_damage(offset) > offset, (position, bit, offset)
