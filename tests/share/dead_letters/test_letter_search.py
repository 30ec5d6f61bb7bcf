"""The search for dead letters in a log."""

from __future__ import annotations

from barnabas.protocol.dead_letter import Original, letter_record
from barnabas.protocol.delivery_state import Cause
from barnabas.protocol.record_batch import ProducedBatch, read_header
from barnabas.protocol.records import encode_records
from barnabas.share.dead_letters.letter_search import written_letters
from barnabas.storage.log.partition_log import PartitionLog
from tests.storage.log_building import NOW_MS, append, open_log
from tests.storage.memory_filesystem import MemoryFileSystem

ORIGINALS = [Original("group", "orders", 0, offset) for offset in range(3)]


async def log_with_letters(filesystem: MemoryFileSystem | None = None) -> PartitionLog:
    """Two ordinary records, and the letters of the originals behind them."""
    log = await open_log(filesystem or MemoryFileSystem())
    await append(log, 2)
    for original in ORIGINALS:
        letter = letter_record(original, 1, Cause.REJECT, NOW_MS, None, with_headers=False)
        data = encode_records([letter])
        await log.append_produced(data, [ProducedBatch(0, read_header(data))], NOW_MS)
    return log


def from_offset(offset: int, *originals: Original) -> dict[Original, int]:
    """These are looked for from this offset on."""
    return dict.fromkeys(originals, offset)


async def test_letters_at_and_behind_the_place_are_found() -> None:
    log = await log_with_letters()
    strangers = Original("group", "orders", 0, 9), Original("other", "orders", 0, 0)
    assert await written_letters(log, from_offset(3, *ORIGINALS, *strangers)) == {*ORIGINALS[1:]}
    assert await written_letters(log, from_offset(0, *ORIGINALS, *strangers)) == {*ORIGINALS}


async def test_each_letter_counts_from_its_own_place_on() -> None:
    """A letter below the place of its record is about an earlier delivery. The record gets another one."""
    log = await log_with_letters()
    assert await written_letters(log, {ORIGINALS[0]: 3, ORIGINALS[1]: 3, ORIGINALS[2]: 2}) == {*ORIGINALS[1:]}


async def test_one_read_serves_all_letters() -> None:
    filesystem = MemoryFileSystem()
    log = await log_with_letters(filesystem)
    filesystem.read_count = 0
    await written_letters(log, from_offset(0, *ORIGINALS))
    assert filesystem.read_count == 1


async def test_nothing_is_read_for_no_letter() -> None:
    assert await written_letters(await log_with_letters(), {}) == set()


async def test_a_log_that_ends_before_the_place_has_none() -> None:
    """A loss of power has shortened it. The record must not wait until the log is as long again."""
    log = await log_with_letters()
    assert await written_letters(log, from_offset(log.log_end_offset, *ORIGINALS)) == set()
    assert await written_letters(log, from_offset(log.log_end_offset + 7, *ORIGINALS)) == set()
