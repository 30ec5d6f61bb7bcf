"""Transactions in a log: their begins and ends, the checks of their batches, and restarts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity
from barnabas.protocol.record_batch import CONTROL_FLAG, LOG_APPEND_TIME_FLAG, TRANSACTIONAL_FLAG
from barnabas.protocol.transaction_marker import TransactionEnd, read_marker_batch
from barnabas.storage.format.producer_snapshot import ProducerSnapshotEntry
from barnabas.storage.format.transaction_index import AbortedTransaction
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig, TimestampType
from tests.storage.log_building import (
    DIRECTORY,
    NOW_MS,
    append,
    append_deltas,
    headers_of,
    open_log,
)
from tests.storage.memory_filesystem import MemoryFileSystem
from tests.storage.transactions import LARGE, Producer, committed_read, has_open_transaction

SMALL = LogConfig(segment_bytes=300, index_interval_bytes=100)
INDEX_PATH = f"{DIRECTORY}/{0:020d}.txnindex"


@pytest.fixture
def filesystem() -> MemoryFileSystem:
    return MemoryFileSystem()


@pytest.fixture
async def log(filesystem: MemoryFileSystem) -> PartitionLog:
    return await open_log(filesystem)


def code_of(error: Exception | None) -> ErrorCode | None:
    assert error is None or isinstance(error, ApiError), error
    return None if error is None else error.code


async def killed(
    filesystem: MemoryFileSystem, log: PartitionLog, config: LogConfig | None = None
) -> PartitionLog:
    return await open_log(filesystem.copy(), config=config, recovery_point=log.recovery_point)


def test_without_transactions_everything_is_stable(log: PartitionLog) -> None:
    append(log, 3)
    assert (log.last_stable_offset, log.high_watermark) == (3, 3)
    assert log.aborted_transactions(0, 3) == []


def test_an_open_transaction_bounds_the_last_stable_offset_until_it_ends(log: PartitionLog) -> None:
    append(log)
    first, second = Producer(log, 1), Producer(log, 2)
    first.send(2)
    second.send()
    append(log)
    assert log.last_stable_offset == 1
    first.commit()
    assert log.last_stable_offset == 3
    second.abort()
    assert log.last_stable_offset == log.high_watermark == 7


def test_the_last_stable_offset_ends_with_data_if_share_state_lies_before_the_transaction(
    log: PartitionLog,
) -> None:
    append(log, 2)
    append_deltas(log, 3)
    Producer(log, 1).send()
    assert (log.last_stable_offset, log.high_watermark) == (2, 6)


def test_the_last_stable_offset_is_never_below_the_log_start(log: PartitionLog) -> None:
    producer = Producer(log, 1)
    producer.send(3)
    append(log)
    log.delete_records(2)
    assert log.last_stable_offset == 2
    log.delete_records(-1)
    assert log.last_stable_offset == 4
    producer.abort()
    assert log.last_stable_offset == 5


@pytest.mark.parametrize("commit", [False, True])
def test_a_marker_is_written_as_kafka_writes_it(log: PartitionLog, commit: bool) -> None:
    producer = Producer(log, 4711, 3)
    producer.send()
    appended = producer.end(commit=commit, coordinator_epoch=5)
    assert (appended.result().base_offset, appended.result().last_offset) == (1, 1)
    data = bytes(log.read(1, bytes_max=LARGE).buffers[0])
    (header,) = headers_of([data])
    assert header.attributes == CONTROL_FLAG | TRANSACTIONAL_FLAG
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4711, 3, -1)
    assert (header.base_timestamp_ms, header.max_timestamp_ms, header.record_count) == (NOW_MS, NOW_MS, 1)
    assert read_marker_batch(data, header) == TransactionEnd(commit, 5)


async def test_a_marker_has_log_append_time_if_the_topic_has(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, config=LogConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME))
    Producer(log, 1).abort()
    (header,) = headers_of(log.read(0, bytes_max=LARGE).buffers)
    assert header.attributes == CONTROL_FLAG | TRANSACTIONAL_FLAG | LOG_APPEND_TIME_FLAG


def test_aborted_transactions_are_found_by_the_range_that_they_overlap(log: PartitionLog) -> None:
    first, second = Producer(log, 1), Producer(log, 2)
    first.send()  # 0
    second.send()  # 1
    first.abort()  # 2
    second.commit()  # 3
    first.send()  # 4
    first.abort()  # 5
    early, late = AbortedTransaction(1, 0, 2, 1), AbortedTransaction(1, 4, 5, 6)
    assert log.aborted_transactions(0, 6) == [early, late]
    assert log.aborted_transactions(2, 4) == [early]
    assert log.aborted_transactions(3, 4) == []
    assert log.aborted_transactions(3, 5) == [late]
    assert committed_read(log) == [1]


def test_a_transaction_without_data_here_is_in_no_index(log: PartitionLog) -> None:
    append(log)
    Producer(log, 1).abort()
    assert log.aborted_transactions(0, 2) == []
    assert log.last_stable_offset == 2


def test_a_batch_of_a_transaction_needs_it_to_be_open_or_verified(log: PartitionLog) -> None:
    producer = Producer(log, 1)
    assert code_of(producer.send(is_verified=False).error) is ErrorCode.invalid_txn_state
    assert producer.send().error is None
    assert producer.send(is_verified=False).error is None
    producer.commit()
    assert code_of(producer.send(is_verified=False).error) is ErrorCode.invalid_txn_state
    assert log.last_stable_offset == log.high_watermark == 3


def test_a_duplicate_is_answered_after_the_transaction_has_ended(log: PartitionLog) -> None:
    producer = Producer(log, 1)
    producer.send(2)
    producer.commit()
    producer.sequence = 0
    again = producer.send(2, is_verified=False)
    assert (again.error, again.result().base_offset, again.result().last_offset) == (None, 0, 1)


def test_a_batch_outside_the_transaction_is_refused_while_it_is_open(log: PartitionLog) -> None:
    producer = Producer(log, 1)
    producer.send()
    assert code_of(producer.send_outside().error) is ErrorCode.invalid_txn_state
    producer.commit()
    assert producer.send_outside().error is None


def test_an_older_epoch_is_fenced_before_other_checks(log: PartitionLog) -> None:
    Producer(log, 1, 4).abort()
    assert code_of(Producer(log, 1, 3).send(is_verified=False).error) is ErrorCode.invalid_producer_epoch


@pytest.mark.parametrize(
    ("epoch", "version", "code"),
    [
        (3, 0, ErrorCode.invalid_producer_epoch),
        (4, 0, None),
        (5, 0, None),
        (3, 2, ErrorCode.invalid_producer_epoch),
        (4, 2, ErrorCode.invalid_producer_epoch),
        (5, 2, None),
    ],
)
def test_only_a_marker_of_a_valid_epoch_may_end_a_transaction(
    log: PartitionLog, epoch: int, version: int, code: ErrorCode | None
) -> None:
    Producer(log, 1, 4).send()
    appended = log.append_marker(1, epoch, 0, commit=True, now_ms=NOW_MS, transaction_version=version)
    assert code_of(appended.error) is code
    assert (log.last_stable_offset == log.high_watermark) == (code is None)


def test_a_marker_sent_again_is_written_again(log: PartitionLog) -> None:
    producer = Producer(log, 1)
    producer.send()
    producer.commit(transaction_version=2)
    again = log.append_marker(1, 1, 0, commit=True, now_ms=NOW_MS, transaction_version=2)
    assert (again.error, again.result().base_offset) == (None, 2)


def test_in_the_last_epoch_a_marker_may_end_a_transaction_of_its_own_epoch(log: PartitionLog) -> None:
    Producer(log, 1, 32767).send()
    appended = log.append_marker(1, 32767, 0, commit=True, now_ms=NOW_MS, transaction_version=2)
    assert (appended.error, log.last_stable_offset) == (None, 2)


def test_the_coordinators_epoch_is_stored_and_not_checked(log: PartitionLog) -> None:
    producer = Producer(log, 1)
    producer.abort(coordinator_epoch=2**31 - 1)
    producer.send()
    assert producer.commit(coordinator_epoch=6).error is None
    assert log.last_stable_offset == log.high_watermark
    entry = log.producer(1)
    assert entry is not None
    assert entry.coordinator_epoch == 6


def test_records_of_the_broker_itself_may_be_part_of_a_transaction(log: PartitionLog) -> None:
    producer = ProducerIdentity(8, 2)
    log.append_records([(b"k", b"v")], NOW_MS, producer=producer)
    log.append_records([(b"k", b"w")], NOW_MS, producer=producer)
    headers = headers_of(log.read(0, bytes_max=LARGE).buffers)
    assert {header[9:12] for header in headers} == {(8, 2, -1)}
    assert all(header.attributes == TRANSACTIONAL_FLAG for header in headers)
    assert (log.last_stable_offset, has_open_transaction(log, 8, 2)) == (0, True)
    log.append_marker(8, 2, 0, commit=True, now_ms=NOW_MS)
    assert (log.last_stable_offset, has_open_transaction(log, 8, 2)) == (3, False)
    refused = log.append_records([(b"k", b"x")], NOW_MS, producer=ProducerIdentity(8, 1))
    assert code_of(refused.error) is ErrorCode.invalid_producer_epoch


def test_whether_a_transaction_is_open_depends_on_the_epoch(log: PartitionLog) -> None:
    Producer(log, 1, 3).send()
    assert [has_open_transaction(log, 1, epoch) for epoch in (2, 3, 4)] == [False, True, False]
    assert not has_open_transaction(log, 2, 3)


def test_producers_are_described_with_their_transactions(log: PartitionLog) -> None:
    append(log)
    producer = Producer(log, 1, 3)
    producer.send(2)
    assert list(log.active_producers()) == [ProducerSnapshotEntry(1, 3, 1, 2, 1, NOW_MS, -1, 1)]
    producer.commit(coordinator_epoch=6)
    assert list(log.active_producers()) == [ProducerSnapshotEntry(1, 3, 1, 2, 1, NOW_MS, 6, -1)]


async def test_a_kill_loses_nothing_of_transactions(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, config=SMALL)
    first, second = Producer(log, 1), Producer(log, 2)
    for _ in range(4):
        first.send()
        second.send()
        first.abort()
    assert log.segment_count > 3
    left = await killed(filesystem, log, SMALL)
    assert left.last_stable_offset == log.last_stable_offset == 1
    end = log.log_end_offset
    assert left.aborted_transactions(0, end) == log.aborted_transactions(0, end)
    assert has_open_transaction(left, 2, 0)
    Producer(left, 2).commit()
    assert committed_read(left) == [1, 4, 7, 10]


async def test_a_flush_lets_the_index_outlive_a_loss_of_power(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem)
    producer = Producer(log, 1)
    producer.send()
    producer.abort()
    await log.flush()
    left = await open_log(filesystem.after_power_loss(), recovery_point=log.recovery_point)
    assert left.aborted_transactions(0, 2) == [AbortedTransaction(1, 0, 1, 2)]


async def test_no_index_file_is_made_before_something_is_aborted(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem)
    producer = Producer(log, 1)
    producer.send()
    producer.commit()
    await log.close()
    assert INDEX_PATH not in filesystem.files
    log = await open_log(filesystem, recovery_point=log.recovery_point)
    assert INDEX_PATH not in filesystem.files


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut short": lambda data: data[:-1],
    "of another version": lambda data: b"\x00\x01" + data[2:],
    "ends before it begins": lambda data: data[:18] + b"\xff" * 8 + data[26:],
    "out of order": lambda data: data[34:] + data[:34],
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
async def test_an_impossible_index_is_rebuilt(
    filesystem: MemoryFileSystem, damage: Callable[[bytes], bytes]
) -> None:
    log = await open_log(filesystem)
    producer = Producer(log, 1)
    for _ in range(3):
        producer.send()
        producer.abort()
    expected = log.aborted_transactions(0, 6)
    await log.close()
    intact = bytes(filesystem.files[INDEX_PATH])
    filesystem.files[INDEX_PATH][:] = damage(intact)
    left = await open_log(filesystem, recovery_point=log.recovery_point)
    assert left.aborted_transactions(0, 6) == expected
    assert filesystem.files[INDEX_PATH] == intact


async def test_an_index_of_a_segment_before_the_tail_is_made_again_if_its_size_is_odd(
    filesystem: MemoryFileSystem,
) -> None:
    log = await open_log(filesystem, config=SMALL)
    producer = Producer(log, 1)
    for _ in range(6):
        producer.send()
        producer.abort()
    await log.close()
    expected, end = log.aborted_transactions, log.log_end_offset
    intact = bytes(filesystem.files[INDEX_PATH])
    filesystem.files[INDEX_PATH][:] = intact[:10]
    left = await open_log(filesystem, config=SMALL, recovery_point=log.recovery_point)
    assert filesystem.files[INDEX_PATH] == intact
    assert committed_read(left) == []
    assert expected is not None and len(left.aborted_transactions(0, end)) == 6


async def test_retention_takes_the_index_with_its_segment(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, config=SMALL)
    producer = Producer(log, 1)
    producer.send()
    producer.abort()
    await log.flush()
    assert INDEX_PATH in filesystem.files
    append(log, value=b"x" * 300)
    log.delete_records(-1)
    await log.enforce_retention(NOW_MS)
    assert INDEX_PATH not in filesystem.files
    assert log.aborted_transactions(0, log.log_end_offset) == []


async def test_an_open_transaction_whose_data_is_deleted_still_waits_for_its_end(
    filesystem: MemoryFileSystem,
) -> None:
    log = await open_log(filesystem, config=SMALL)
    producer = Producer(log, 1)
    producer.send()
    append(log, value=b"x" * 300)
    log.delete_records(-1)
    await log.enforce_retention(NOW_MS)
    await log.close()
    left = await open_log(
        filesystem, config=SMALL, recovery_point=log.recovery_point, log_start_offset=log.log_start_offset
    )
    append(left)
    assert (left.last_stable_offset, left.high_watermark) == (2, 3)
    Producer(left, 1).abort()
    assert left.last_stable_offset == 4
