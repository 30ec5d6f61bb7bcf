"""Compaction of a log with transactions: committed records, remaining markers and index entries."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.typing import EventDict

from barnabas.protocol.record_batch import iterate_headers
from barnabas.protocol.records import iterate_records
from barnabas.storage.cleaner.offset_map import ENTRY_BYTES
from barnabas.storage.errors import StorageError
from barnabas.storage.format.transaction_index import ENTRY_BYTES as TRANSACTION_ENTRY_BYTES
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.state.shared_parts import SharedParts
from tests.storage.cleaner.crashing_filesystem import CrashingFileSystem
from tests.storage.cleaner.dirty_logs import (
    COMPACTED,
    SMALL,
    append_batch,
    batches_on_disk,
    clean,
    everything,
    keyed,
    roll,
)
from tests.storage.log_building import DIRECTORY, NOW_MS, append, append_deltas, open_log, small_storage
from tests.storage.memory_filesystem import MemoryFileSystem
from tests.storage.transactions import LARGE, Producer, committed_read

DELETE_RETENTION_MS = COMPACTED.delete_retention_ms
KEYS = (b"a", b"b", b"c")


def index_files(filesystem: MemoryFileSystem) -> dict[str, int]:
    """The number of entries of each transaction index, by its segment's base offset."""
    return {
        path.rpartition("/")[2].lstrip("0").removesuffix(".txnindex"): len(content) // TRANSACTION_ENTRY_BYTES
        for path, content in filesystem.files.items()
        if path.endswith(".txnindex") and path.startswith(DIRECTORY)
    }


def committed_by_key(log: PartitionLog) -> dict[bytes | None, bytes | None]:
    """The last committed value of each key, without tombstones."""
    committed = set(committed_read(log, log.log_start_offset))
    latest: dict[bytes | None, bytes | None] = {}
    offset = log.log_start_offset
    while buffers := log.read(offset, bytes_max=LARGE, upper_offset=log.last_stable_offset).buffers:
        data = b"".join(buffers)
        for position, header in iterate_headers(data):
            offset = header.last_offset + 1
            if header.base_offset in committed:
                latest.update((record.key, record.value) for record in iterate_records(data, position))
    return {key: value for key, value in latest.items() if value is not None}


async def test_aborted_records_are_removed_and_committed_ones_compacted() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=COMPACTED)
    first, second = Producer(log, 1), Producer(log, 2)
    append_batch(log, keyed(b"a", b"plain"))  # 0
    first.send(key=b"a", value=b"aborted")  # 1
    second.send(key=b"b", value=b"old")  # 2
    first.abort()  # 3
    second.send(key=b"b", value=b"new")  # 4
    second.commit()  # 5
    first.send(key=b"c", value=b"last")  # 6
    first.commit()  # 7
    await roll(log)
    append_batch(log, keyed(b"d", b"active"))
    before = committed_by_key(log)
    await clean(log)
    assert committed_by_key(log) == before == {b"a": b"plain", b"b": b"new", b"c": b"last", b"d": b"active"}
    left = [header.base_offset for header in batches_on_disk(filesystem)]
    assert left == [0, 3, 4, 5, 6, 7, 8]
    assert log.aborted_transactions(0, 9)[0][:3] == (1, 1, 3)
    again = await clean(log, now_ms=NOW_MS + 1)
    assert again is not None
    assert log.aborted_transactions(0, 9) == []
    assert index_files(filesystem) == {"": 0}
    await log.close()
    left_log = await open_log(filesystem, config=COMPACTED, recovery_point=log.recovery_point)
    assert committed_by_key(left_log) == before


async def test_markers_without_records_are_removed_after_delete_retention() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=COMPACTED)
    producer = Producer(log, 1)
    for number in range(3):
        producer.send(key=b"a", value=b"%d" % number)
        producer.end(commit=number != 1)
    await roll(log)
    append_batch(log, keyed(b"z", b"active"))

    async def left_at(now_ms: int) -> list[int]:
        await clean(log, now_ms=now_ms)
        return [header.base_offset for header in batches_on_disk(filesystem)]

    assert await left_at(NOW_MS) == [1, 3, 4, 5, 6], "the data of 0 and 2 is gone"
    assert await left_at(NOW_MS) == [1, 3, 4, 5, 6], "now the marker of 3 gets its horizon, too"
    assert await left_at(NOW_MS + DELETE_RETENTION_MS - 1) == [1, 3, 4, 5, 6]
    assert await left_at(NOW_MS + DELETE_RETENTION_MS) == [4, 5, 6]


async def test_nothing_is_compacted_from_the_segment_of_an_open_transaction_on() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=COMPACTED)
    append_batch(log, keyed(b"a", b"1"))
    await roll(log)
    append_batch(log, keyed(b"a", b"2"))
    producer = Producer(log, 1)
    producer.send(key=b"a", value=b"3")
    await roll(log)
    append_batch(log, keyed(b"a", b"4"))
    await roll(log)
    append_batch(log, keyed(b"b", b"active"))
    cleaned = await clean(log)
    assert cleaned is not None
    assert cleaned.compacted_offset == 1
    assert [header.base_offset for header in batches_on_disk(filesystem)] == [0, 1, 2, 3, 4]
    producer.abort()
    await clean(log, cleaned_offset=1)
    assert [header.base_offset for header in batches_on_disk(filesystem)] == [2, 3, 4, 5]
    assert committed_by_key(log) == {b"a": b"4", b"b": b"active"}


async def test_cleaning_only_share_state_keeps_the_transaction_index() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=SMALL)
    producer = Producer(log, 1)
    for _ in range(3):
        producer.send()
        producer.abort()
        append_deltas(log, 4)
        await roll(log)
    append(log)
    expected = log.aborted_transactions(0, log.log_end_offset)
    assert len(expected) == 3
    cleaned = await clean(log)
    assert cleaned is not None
    assert cleaned.written_bytes
    assert log.segment_count == 2
    assert log.aborted_transactions(0, log.log_end_offset) == expected
    assert index_files(filesystem) == {"": 3}


async def test_share_state_behind_the_compacted_part_is_cleaned_and_aborted_transactions_stay_known() -> None:
    """In one pass: a segment between the two, with data of the transaction, is not read."""
    filesystem = MemoryFileSystem()
    config = replace(COMPACTED, min_compaction_lag_ms=1_000)
    young_ms = NOW_MS + 1_001
    log = await open_log(filesystem, config=config)
    append_batch(log, keyed(b"a", b"old"))  # 0
    append_batch(log, keyed(b"a", b"new"))  # 1
    await roll(log)
    producer = Producer(log, 1)
    producer.send(key=b"a", value=b"aborted")  # 2
    append_batch(log, keyed(b"b", b"y" * 1_780, timestamp_ms=young_ms))  # 3
    await roll(log)
    producer.abort()  # 4
    append_deltas(log, 4)
    await roll(log)
    append_batch(log, keyed(b"c", b"active", timestamp_ms=young_ms))
    expected = log.aborted_transactions(0, log.log_end_offset)
    assert [one.first_offset for one in expected] == [2]
    plan = everything(await log.plan_cleaning(0, young_ms))
    assert plan.worth == [False, False, True]
    cleaned = await log.clean(plan, young_ms)
    assert cleaned is not None
    assert cleaned.compacted_offset == 2
    offsets = [header.base_offset for header in batches_on_disk(filesystem)]
    assert offsets == [1, 2, 3, 4, 5, 9], "a record at 0 and share state from 5 on went"
    assert log.segment_count == 4
    assert log.aborted_transactions(0, log.log_end_offset) == expected
    assert committed_by_key(log) == {b"a": b"new", b"b": b"y" * 1_780, b"c": b"active"}


async def test_a_crash_at_any_operation_leaves_aborted_records_unread() -> None:
    filesystem = CrashingFileSystem()
    log = await open_log(filesystem, config=COMPACTED)
    producers = [Producer(log, number) for number in (1, 2)]
    for number in range(24):
        producer = producers[number % 2]
        producer.send(key=KEYS[number % 3], value=b"%d" % number)
        if number % 3:
            producer.end(commit=number % 5 == 0)
        if number % 8 == 7:
            await roll(log)
    for producer in producers:
        producer.abort()
    await roll(log)
    append_batch(log, keyed(b"z", b"active"))
    await log.flush()
    before = committed_by_key(log)
    filesystem.watch()
    await clean(log)
    filesystem.crash_here()
    for left in filesystem.left_by_crashes():
        again = await open_log(left, config=COMPACTED, recovery_point=log.recovery_point)
        assert committed_by_key(again) == before
        assert again.last_stable_offset == again.high_watermark
        await again.close()
    await log.close()


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), keys_max=st.sampled_from([1, 2, 1000]))
async def test_cleaning_changes_nothing_for_committed_readers(seed: int, keys_max: int) -> None:
    random = Random(seed)
    filesystem = MemoryFileSystem()
    storage = small_storage(cleaner_dedupe_buffer_bytes=keys_max * ENTRY_BYTES)
    log = await open_log(filesystem, config=COMPACTED, storage=storage)
    producers = [Producer(log, number) for number in (1, 2, 3)]
    cleaned_offset, now_ms = 0, NOW_MS
    expected: dict[bytes | None, bytes | None] = {}
    for number in range(60):
        match random.choice(("send", "send", "send", "end", "end", "append", "roll", "clean", "reopen")):
            case "send":
                value = random.choice((b"%d" % number, None))
                batch_keys = random.choices(KEYS, k=random.randint(1, 2))
                for key in batch_keys:
                    random.choice(producers).send(key=key, value=value)
            case "end":
                random.choice(producers).end(
                    commit=random.random() < 0.5, transaction_version=random.choice((0, 2))
                )
            case "append":
                append_batch(log, keyed(random.choice(KEYS), random.choice((b"p%d" % number, None))))
            case "roll":
                await roll(log)
            case "clean":
                now_ms += random.choice((0, DELETE_RETENTION_MS // 2))
                expected = committed_by_key(log)
                cleaned = await clean(log, cleaned_offset=cleaned_offset, now_ms=now_ms)
                if cleaned is not None and cleaned.compacted_offset is not None:
                    cleaned_offset = cleaned.compacted_offset
                assert committed_by_key(log) == expected
            case _:
                expected, stable = committed_by_key(log), log.last_stable_offset
                left = filesystem.copy() if random.random() < 0.5 else filesystem
                if left is filesystem:
                    await log.close()
                filesystem = left
                log = await open_log(
                    left,
                    config=COMPACTED,
                    storage=storage,
                    recovery_point=random.choice((0, log.recovery_point)),
                )
                for producer in producers:
                    producer.log = log
                assert log.last_stable_offset == stable
                assert committed_by_key(log) == expected


async def log_with_an_aborted_record(filesystem: MemoryFileSystem) -> PartitionLog:
    """A closed segment with an aborted record of the key `a`, behind a committed one."""
    log = await open_log(filesystem, config=COMPACTED)
    producer = Producer(log, 1)
    append_batch(log, keyed(b"a", b"committed"))
    producer.send(key=b"a", value=b"aborted")
    producer.abort()
    await roll(log)
    append_batch(log, keyed(b"b", b"active"))
    await log.flush()
    return log


async def test_no_log_is_cleaned_by_a_damaged_index() -> None:
    filesystem = MemoryFileSystem()
    shared = SharedParts.make(filesystem, DIRECTORY, 100)
    log = await log_with_an_aborted_record(filesystem)
    expected = committed_by_key(log)
    await log.close()
    options: dict[str, Any] = {"recovery_point": log.recovery_point, "shared": shared}
    log = await open_log(filesystem, config=COMPACTED, **options)
    filesystem.files[f"{DIRECTORY}/{0:020d}.txnindex"][9] ^= 1
    with pytest.raises(StorageError, match="txnindex"):
        await clean(log)
    assert log.offline is not None
    await log.close(clean=False)
    log = await open_log(filesystem, config=COMPACTED, **options)
    assert await clean(log) is not None
    assert committed_by_key(log) == expected == {b"a": b"committed", b"b": b"active"}


async def test_a_kill_behind_a_cleaning_leaves_no_index_that_counts_as_damaged(
    log_lines: list[EventDict],
) -> None:
    filesystem = MemoryFileSystem()
    log = await log_with_an_aborted_record(filesystem)
    assert await clean(log) is not None
    again = await open_log(filesystem.copy(), config=COMPACTED, recovery_point=log.recovery_point)
    assert committed_by_key(again) == committed_by_key(log)
    assert not [line for line in log_lines if line["log_level"] == "warning"]
