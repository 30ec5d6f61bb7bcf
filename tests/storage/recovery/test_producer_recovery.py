"""Producers and their transactions after snapshots were damaged, or are beyond the log's end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

import pytest
from structlog.typing import EventDict

from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.storage.errors import CorruptBatch
from barnabas.storage.format.index_checksums import SegmentChecksums
from barnabas.storage.format.transaction_index import AbortedTransaction
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig
from barnabas.storage.recovery import log_recovery, segment_recovery
from barnabas.storage.recovery.segment_recovery import Tail, load_segments
from barnabas.storage.segments.segment import Segment
from barnabas.storage.state.log_files import LogPlace
from tests.storage.log_building import NOW_MS, append, open_log, outcomes, sequenced
from tests.storage.memory_filesystem import MemoryFileSystem
from tests.storage.transactions import Producer, committed_read, has_open_transaction

SMALL = LogConfig(segment_bytes=300, index_interval_bytes=100)
ABORTED, OPEN = 1000, 1001
"""Producer ids."""
LARGE = 2**30


def named(filesystem: MemoryFileSystem, suffix: str) -> list[str]:
    return sorted(name for name in filesystem.files if name.endswith(suffix))


def snapshots(filesystem: MemoryFileSystem) -> list[int]:
    """The offsets of the producer snapshots."""
    return [int(name.rpartition("/")[2][:20]) for name in named(filesystem, ".snapshot")]


async def reopened(filesystem: MemoryFileSystem, recovery_point: int) -> PartitionLog:
    return await open_log(filesystem, config=SMALL, recovery_point=recovery_point)


async def lose_tail(filesystem: MemoryFileSystem) -> int:
    """A log of several segments with an aborted transaction at 0 to 3 (its marker) and an open one from 4 on.
    Its last segment has lost all records of two snapshots. Returns its recovery point.
    """
    log = await open_log(filesystem, config=SMALL)
    aborted, is_open = Producer(log, ABORTED), Producer(log, OPEN)
    aborted.send(3)
    aborted.abort()
    is_open.send(2)
    while log.segment_count < 4:
        append(log)
    other = Producer(log, OPEN + 1)
    for _ in range(2):
        other.send_outside()
        await log.flush()
    assert min(snapshots(filesystem)) > int(named(filesystem, ".log")[-1][-24:-4])
    del filesystem.files[named(filesystem, ".log")[-1]][5:]
    return log.recovery_point


async def test_a_lost_tail_ends_no_transaction_of_the_remaining_log() -> None:
    filesystem = MemoryFileSystem()
    log = await reopened(filesystem, await lose_tail(filesystem))
    assert log.last_stable_offset == 4
    assert committed_read(log) == []
    assert has_open_transaction(log, OPEN, 0)
    assert log.append_marker(OPEN, 0, 0, commit=False, now_ms=1).error is None
    assert AbortedTransaction(OPEN, 4, log.log_end_offset - 1, log.log_end_offset) in (
        log.aborted_transactions(0, log.log_end_offset)
    )
    assert committed_read(log) == list(range(6, log.log_end_offset - 1))


async def test_a_lost_tail_admits_no_duplicates() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=SMALL)
    appends = [sequenced(log, sequence) for sequence in range(19)]
    for sequence in (19, 20, 21):
        appends.append(sequenced(log, sequence))
        await log.flush()
    assert min(snapshots(filesystem)) > int(named(filesystem, ".log")[-1][-24:-4])
    del filesystem.files[named(filesystem, ".log")[-1]][:]
    again = await reopened(filesystem, log.recovery_point)
    assert again.log_end_offset <= 20
    last = again.log_end_offset - 1
    assert outcomes([sequenced(again, last), sequenced(again, last + 1)]) == [
        *outcomes([appends[last]]),
        (last + 1, last + 1),
    ]


async def test_the_replay_of_the_whole_log_survives_a_crash_before_the_next_flush() -> None:
    filesystem = MemoryFileSystem()
    recovery_point = await lose_tail(filesystem)
    log = await reopened(filesystem, recovery_point)
    assert snapshots(filesystem) == [log.log_end_offset]
    again = await reopened(filesystem.after_power_loss(), log.recovery_point)
    assert again.last_stable_offset == 4


@pytest.mark.parametrize("file_count", [1, 2, 3])
async def test_after_a_crash_during_the_replay_the_log_is_replayed_again(file_count: int) -> None:
    """Even without snapshots: the stored recovery point beyond the log's end shows the loss, too."""
    filesystem = MemoryFileSystem()
    recovery_point = await lose_tail(filesystem)
    for name in named(filesystem, ".snapshot")[-file_count:]:
        del filesystem.files[name]
    assert (await reopened(filesystem, recovery_point)).last_stable_offset == 4


async def test_the_index_of_aborted_transactions_is_made_whole_again() -> None:
    filesystem = MemoryFileSystem()
    recovery_point = await lose_tail(filesystem)
    (index,) = named(filesystem, ".txnindex")
    content = bytes(filesystem.files.pop(index))
    log = await reopened(filesystem, recovery_point)
    assert log.aborted_transactions(0, 4) == [AbortedTransaction(ABORTED, 0, 3, 4)]
    assert bytes(filesystem.files[index]) == content
    assert bytes(filesystem.after_power_loss().files[index]) == content


async def test_an_index_that_names_all_is_left_alone() -> None:
    filesystem = MemoryFileSystem()
    recovery_point = await lose_tail(filesystem)
    (index,) = named(filesystem, ".txnindex")
    before = filesystem.files[index]
    log = await reopened(filesystem, recovery_point)
    assert filesystem.files[index] is before
    assert log.aborted_transactions(0, 4) == [AbortedTransaction(ABORTED, 0, 3, 4)]


def flip_in_data(log: bytearray, position: int) -> None:
    log[position + 64] ^= 1


def flip_the_size(log: bytearray, position: int) -> None:
    log[position + 8] = 0x7F


@pytest.mark.parametrize("spoil", [flip_in_data, flip_the_size], ids=["in a record", "its size"])
async def test_a_bad_batch_hides_no_batch_behind_it(spoil: Callable[[bytearray, int], None]) -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=LogConfig(index_interval_bytes=1))
    append(log)
    size_bytes = log.size_bytes
    append(log)
    Producer(log, OPEN).send(2)
    for _ in range(2):
        append(log)
        await log.flush()
    spoil(filesystem.files[named(filesystem, ".log")[0]], size_bytes)
    for name in named(filesystem, ".snapshot"):
        filesystem.files[name][8] ^= 1
    again = await open_log(filesystem, recovery_point=log.recovery_point)
    assert again.last_stable_offset == 2
    with pytest.raises(CorruptBatch):
        again.read(1, bytes_max=LARGE)


async def test_a_log_without_producers_and_snapshots_is_not_read(
    log_lines: list[EventDict],
) -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=SMALL)
    for _ in range(20):
        append(log)
    await log.close()
    again = await reopened(filesystem, log.recovery_point)
    assert (again.log_end_offset, snapshots(filesystem)) == (20, [])
    assert log_lines == []


# Logs that begin behind the snapshot.


async def with_snapshot_before_the_start(*, ends: bool) -> tuple[MemoryFileSystem, int, int]:
    """A log whose first segment, with the transaction that the one good snapshot has open, is gone; its
    marker too, if it `ends`. With it the recovery point, and the producer's next sequence.
    """
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=SMALL)
    producer = Producer(log, OPEN)
    producer.send(2)
    await log.flush()
    (snapshot,) = named(filesystem, ".snapshot")
    kept = filesystem.files[snapshot]
    if ends:
        producer.commit()
    while log.segment_count < 3:
        append(log)
    if not ends:
        producer.send()
    await log.flush()
    first = named(filesystem, ".log")[0].removesuffix(".log")
    for name in [name for name in filesystem.files if name.startswith(first) or name.endswith(".snapshot")]:
        del filesystem.files[name]
    filesystem.files[snapshot] = kept
    return filesystem, log.recovery_point, producer.sequence


async def test_a_transaction_that_may_have_ended_before_the_start_does_not_block_readers() -> None:
    filesystem, recovery_point, _ = await with_snapshot_before_the_start(ends=True)
    log = await reopened(filesystem, recovery_point)
    assert log.log_start_offset > 2
    assert log.last_stable_offset == log.high_watermark


async def test_a_transaction_with_batches_in_the_log_is_open() -> None:
    filesystem, recovery_point, _ = await with_snapshot_before_the_start(ends=False)
    log = await reopened(filesystem, recovery_point)
    assert log.last_stable_offset == log.high_watermark - 1
    assert has_open_transaction(log, OPEN, 0)


async def test_the_sequences_of_a_snapshot_before_the_start_still_count() -> None:
    filesystem, recovery_point, sequence = await with_snapshot_before_the_start(ends=True)
    log = await reopened(filesystem, recovery_point)
    producer = Producer(log, OPEN)
    producer.sequence = sequence + 1
    error = producer.send_outside().error
    assert isinstance(error, ApiError)
    assert error.code is ErrorCode.out_of_order_sequence_number


async def test_a_log_that_starts_over_knows_of_no_transaction() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=SMALL)
    Producer(log, OPEN).send(2)
    await log.flush()
    append(log, 20)
    await log.flush()
    for name in named(filesystem, ".log"):
        del filesystem.files[name][:]
    again = await open_log(
        filesystem, config=SMALL, recovery_point=log.recovery_point, log_start_offset=log.log_end_offset - 1
    )
    assert again.log_end_offset == again.last_stable_offset == log.log_end_offset - 1
    assert not has_open_transaction(again, OPEN, 0)


async def test_aborts_behind_the_recovery_point_survive_two_crashes() -> None:
    """The first start reads the whole log, the second only the part behind the first one's snapshot."""
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=SMALL)
    sequenced(log, 0)
    await log.flush()
    recovery_point = log.recovery_point
    producer = Producer(log, ABORTED)
    producer.send(3)
    producer.abort()
    append(log)
    expected = committed_read(log), log.aborted_transactions(0, log.log_end_offset)
    assert expected[1]
    (name,) = named(filesystem, ".snapshot")
    filesystem.files[name][-1] ^= 1
    first_start = await reopened(filesystem, recovery_point)
    again = await reopened(filesystem.copy(), first_start.recovery_point)
    assert (committed_read(again), again.aborted_transactions(0, again.log_end_offset)) == expected


async def test_producers_of_removed_segments_are_in_a_snapshot() -> None:
    filesystem, config, recovery_point = MemoryFileSystem(), LogConfig(retention_ms=1000), 0
    log = await open_log(filesystem, config=config)
    for sequence in range(20):
        sequenced(log, sequence)
        if sequence == 2:
            await log.flush()
            recovery_point = log.recovery_point
    await log.flusher.sync()
    await log.enforce_retention(NOW_MS + 10_000)
    start_offset = log.log_start_offset
    assert start_offset == 20
    again = await open_log(
        filesystem.copy(), config=config, recovery_point=recovery_point, log_start_offset=start_offset
    )
    assert outcomes([sequenced(again, 20)]) == [(20, 20)]


async def test_appends_while_retention_flushes_are_not_removed() -> None:
    filesystem, config = MemoryFileSystem(), LogConfig(retention_ms=1)
    log = await open_log(filesystem, config=config)
    for sequence in range(3):
        sequenced(log, sequence)
    filesystem.hold()
    retention = asyncio.create_task(log.enforce_retention(NOW_MS + 10))
    await asyncio.sleep(0)
    assert outcomes([sequenced(log, 3)]) == [(3, 3)]
    filesystem.release()
    assert (await retention, log.log_start_offset, log.recovery_point) == (0, 0, 3)
    killed = await open_log(filesystem.copy(), config=config, recovery_point=log.recovery_point)
    assert outcomes([sequenced(killed, 3), sequenced(killed, 4)]) == [(3, 3), (4, 4)]
    assert (await log.enforce_retention(NOW_MS + 10), log.log_start_offset) == (1, 4)
    killed = await open_log(
        filesystem.copy(), config=config, recovery_point=log.recovery_point, log_start_offset=4
    )
    assert outcomes([sequenced(killed, 4)]) == [(4, 4)]


async def test_flushed_segments_are_removed_even_if_others_were_filled_meanwhile() -> None:
    filesystem, config = MemoryFileSystem(), LogConfig(segment_bytes=300, retention_ms=1)
    log = await open_log(filesystem, config=config)
    while log.segment_count < 3:
        append(log)
    filesystem.hold()
    retention = asyncio.create_task(log.enforce_retention(NOW_MS + 10))
    await asyncio.sleep(0)
    while log.segment_count < 5:
        append(log)
    filesystem.release()
    assert await retention == 2
    assert log.log_start_offset <= log.recovery_point < log.log_end_offset


@pytest.mark.parametrize("recovery_point", [0, 6])
async def test_batches_of_a_long_tail_are_not_all_kept_in_memory(
    monkeypatch: pytest.MonkeyPatch, recovery_point: int
) -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=SMALL)
    producers = [Producer(log, number) for number in range(3)]
    for number in range(24):
        producers[number % 3].send()
        if number % 4 == 3:
            producers[number % 3].end(commit=number % 8 == 3)
        if log.log_end_offset == recovery_point:
            await log.flush()
    expected = log.active_producers(), committed_read(log), log.aborted_transactions(0, log.log_end_offset)
    assert log.segment_count > 5
    tails: list[Tail] = []

    def noted(
        place: LogPlace, names: Sequence[str], checksums: Mapping[int, SegmentChecksums], now_ms: int
    ) -> tuple[list[Segment], Tail]:
        segments, tail = load_segments(place, names, checksums, now_ms)
        tails.append(tail)
        return segments, tail

    monkeypatch.setattr(log_recovery, "load_segments", noted)
    for kept_max in (10_000, 5, 0):
        monkeypatch.setattr(segment_recovery, "PRODUCED_KEPT_MAX", kept_max)
        again = await reopened(filesystem.copy(), recovery_point)
        found = again.active_producers(), committed_read(again)
        assert (*found, again.aborted_transactions(0, again.log_end_offset)) == expected
    whole, *short = tails
    assert whole.produced_until is None
    assert [len(tail.produced) for tail in short] == [5, 0]
    assert [tail.produced_until for tail in short] == [
        whole.produced[kept].header.base_offset for kept in (5, 0)
    ]
