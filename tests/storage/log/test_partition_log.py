"""A log's public methods: appends, duplicates, share state, log start, rolls and closing."""

import errno
from functools import partial

import pytest

from barnabas.protocol.control_record import ShareCheckpoint, ShareDelta
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.record_batch import LOG_APPEND_TIME_FLAG
from barnabas.protocol.records import iterate_records
from barnabas.storage.errors import LogClosed, LogOffline, StorageError
from barnabas.storage.format.share_index import group_hash
from barnabas.storage.log.appended import Append
from barnabas.storage.log_config import FlushPolicy, LogConfig, TimestampType
from tests.storage.log_building import (
    NOW_MS,
    append,
    append_checkpoint,
    append_deltas,
    headers_of,
    max_timestamp,
    offset_for_timestamp,
    open_log,
    outcomes,
    produced,
    recorder,
    sequenced,
    small_storage,
    validated,
    values_read,
)
from tests.storage.memory_filesystem import MemoryFileSystem


@pytest.fixture
def filesystem() -> MemoryFileSystem:
    return MemoryFileSystem()


def code_of(appended: Append) -> ErrorCode:
    assert isinstance(appended.error, ApiError)
    return appended.error.code


async def test_batches_get_offset_and_leader_epoch_and_keep_the_rest(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, leader_epoch=5)
    append(log, 2)
    sent = produced(3, value=b"order")
    log.append_produced(sent, validated(sent), NOW_MS)
    stored = b"".join(log.read(2, bytes_max=10_000).buffers)
    (header,) = headers_of([stored])
    assert (header.base_offset, header.leader_epoch, header.last_offset) == (2, 5, 4)
    assert stored[16:] == sent[16:]
    assert [record.value for record in iterate_records(stored)] == [b"order"] * 3


async def test_log_append_time_is_the_brokers(filesystem: MemoryFileSystem) -> None:
    config = LogConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME)
    log = await open_log(filesystem, config=config)
    appended = append(log, 2, timestamp_ms=5, now_ms=NOW_MS + 77)
    stored = b"".join(log.read(0, bytes_max=10_000).buffers)
    (header,) = headers_of([stored])
    assert appended.result().log_append_time_ms == NOW_MS + 77
    assert header.attributes & LOG_APPEND_TIME_FLAG
    assert {record.timestamp_ms for record in iterate_records(stored)} == {NOW_MS + 77}
    assert await offset_for_timestamp(log, NOW_MS) == (NOW_MS + 77, 0)


async def test_create_time_is_the_producers(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem)
    appended = append(log, timestamp_ms=5)
    assert appended.result().log_append_time_ms == -1
    assert await max_timestamp(log) == (5, 0)


async def test_brokers_own_records_are_one_batch(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem)
    appended = log.append_records([(b"key", b"value"), (None, None)], NOW_MS)
    assert outcomes([appended]) == [(0, 1)]
    (header,) = headers_of(log.read(0, bytes_max=1000).buffers)
    assert (header.record_count, header.base_timestamp_ms) == (2, NOW_MS)


async def test_result_of_an_append_has_the_log_start(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem)
    append(log, 5)
    log.delete_records(3)
    assert append(log).result().log_start_offset == 3


class TestIdempotence:
    async def test_one_of_the_last_five_batches_gets_the_result_of_its_first_append(
        self, filesystem: MemoryFileSystem
    ) -> None:
        log = await open_log(filesystem)
        first = [sequenced(log, sequence) for sequence in range(6)]
        again = [sequenced(log, sequence) for sequence in range(1, 6)]
        assert outcomes(again) == outcomes(first[1:])
        assert [appended.result().log_append_time_ms for appended in again] == [NOW_MS] * 5
        assert log.log_end_offset == 6

    async def test_older_repetition_is_out_of_order(self, filesystem: MemoryFileSystem) -> None:
        log = await open_log(filesystem)
        for sequence in range(6):
            sequenced(log, sequence)
        assert code_of(sequenced(log, 0)) is ErrorCode.out_of_order_sequence_number

    async def test_gap_is_out_of_order_and_leaves_nothing(self, filesystem: MemoryFileSystem) -> None:
        log = await open_log(filesystem)
        sequenced(log, 0, 3)
        assert code_of(sequenced(log, 4)) is ErrorCode.out_of_order_sequence_number
        assert outcomes([sequenced(log, 3)]) == [(3, 3)]

    async def test_overlap_is_out_of_order(self, filesystem: MemoryFileSystem) -> None:
        log = await open_log(filesystem)
        sequenced(log, 0, 3)
        assert code_of(sequenced(log, 0, 2)) is ErrorCode.out_of_order_sequence_number

    async def test_new_epoch_begins_at_zero(self, filesystem: MemoryFileSystem) -> None:
        log = await open_log(filesystem)
        sequenced(log, 0)
        assert code_of(sequenced(log, 1, producer_epoch=1)) is ErrorCode.out_of_order_sequence_number
        assert outcomes([sequenced(log, 0, producer_epoch=1)]) == [(1, 1)]

    async def test_older_epoch_is_fenced(self, filesystem: MemoryFileSystem) -> None:
        log = await open_log(filesystem)
        sequenced(log, 0, producer_epoch=1)
        assert code_of(sequenced(log, 1, producer_epoch=0)) is ErrorCode.invalid_producer_epoch

    async def test_unknown_producer_may_begin_anywhere(self, filesystem: MemoryFileSystem) -> None:
        log = await open_log(filesystem)
        assert outcomes([sequenced(log, 40), sequenced(log, 41)]) == [(0, 0), (1, 1)]


class TestShareState:
    async def test_high_watermark_stays_behind_the_last_data(self, filesystem: MemoryFileSystem) -> None:
        log = await open_log(filesystem)
        steps: list[tuple[int, int]] = []
        for step in (append_deltas, append, append_deltas, append_deltas, append):
            step(log)
            steps.append((log.high_watermark, log.log_end_offset))
        assert steps == [(0, 1), (2, 2), (2, 3), (2, 4), (5, 5)]

    async def test_entries_come_newest_first_from_all_segments(self, filesystem: MemoryFileSystem) -> None:
        log = await open_log(filesystem, config=LogConfig(segment_bytes=400))
        append_checkpoint(log, "a")
        for number in range(6):
            append(log)
            append_deltas(log, group_id="ab"[number % 2])
        assert log.segment_count > 2
        entries = list(log.share_records.newest(group_hash("a")))
        assert [(entry.offset, entry.kind) for entry in entries] == [(10, 6), (6, 6), (2, 6), (0, 5)]
        records = [log.share_records.read(entry) for entry in entries]
        assert [offset for offset, _ in records] == [10, 6, 2, 0]
        assert [type(record) for _, record in records] == [ShareDelta] * 3 + [ShareCheckpoint]
        assert {record.group_id for _, record in records} == {"a"}
        assert list(log.share_records.newest(group_hash("unknown"))) == []

    async def test_tombstone_is_marked(self, filesystem: MemoryFileSystem) -> None:
        log = await open_log(filesystem)
        append_checkpoint(log)
        append_checkpoint(log, deleted=True)
        entries = log.share_records.newest(group_hash("group"))
        assert [entry.tombstone for entry in entries] == [True, False]

    async def test_runs_hold_the_control_offsets(self, filesystem: MemoryFileSystem) -> None:
        log = await open_log(filesystem)
        append(log, 2)
        append_deltas(log, 3)
        append(log)
        assert log.control_runs.data_ranges(0, 5) == [(0, 1), (5, 5)]


class TestDeleteRecords:
    async def test_log_start_moves_and_listeners_are_called(self, filesystem: MemoryFileSystem) -> None:
        log = await open_log(filesystem)
        append(log, 10)
        heard: list[str] = []
        log.when_moved(partial(recorder(heard, "moved"), log))
        assert log.delete_records(4) == 4
        assert log.delete_records(2) == 4
        assert (log.log_start_offset, heard) == (4, ["moved"])

    async def test_minus_one_means_all_visible_records(self, filesystem: MemoryFileSystem) -> None:
        log = await open_log(filesystem)
        append(log, 10)
        append_deltas(log)
        assert log.delete_records(-1) == 10
        assert (log.high_watermark, log.log_end_offset) == (10, 11)

    @pytest.mark.parametrize("offset", [-2, 11])
    async def test_offset_beyond_the_high_watermark_is_refused(
        self, filesystem: MemoryFileSystem, offset: int
    ) -> None:
        log = await open_log(filesystem)
        append(log, 10)
        append_deltas(log)
        with pytest.raises(ApiError) as refused:
            log.delete_records(offset)
        assert refused.value.code is ErrorCode.offset_out_of_range


async def test_end_at_the_opening_is_the_end_after_recovery(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem)
    append(log, 3)
    assert (log.opened_end_offset, log.log_end_offset) == (0, 3)
    again = await open_log(filesystem.copy())
    append(again, 2)
    assert (again.opened_end_offset, again.log_end_offset) == (3, 5)


class TestRoll:
    async def test_segment_holds_no_more_than_segment_bytes(self, filesystem: MemoryFileSystem) -> None:
        log = await open_log(filesystem, config=LogConfig(segment_bytes=200))
        for _ in range(7):
            append(log)
        sizes = {name: len(data) for name, data in filesystem.files.items() if name.endswith(".log")}
        assert len(sizes) == 4
        assert max(sizes.values()) <= 200

    async def test_segment_spans_no_more_than_segment_ms_of_records(
        self, filesystem: MemoryFileSystem
    ) -> None:
        log = await open_log(filesystem, config=LogConfig(segment_ms=100))
        for timestamp_ms in (1000, 1050, 1100, 1101, 1150):
            append(log, timestamp_ms=timestamp_ms)
        assert [name[-23:-4] for name in sorted(filesystem.files) if name.endswith(".log")] == [
            f"{0:019d}",
            f"{3:019d}",
        ]

    async def test_full_index_rolls(self, filesystem: MemoryFileSystem) -> None:
        log = await open_log(filesystem, config=LogConfig(index_interval_bytes=0, segment_index_bytes=24))
        for _ in range(10):
            append(log)
        assert log.segment_count == 3

    async def test_offsets_of_a_segment_fit_its_index(self, filesystem: MemoryFileSystem) -> None:
        log = await open_log(filesystem, config=LogConfig(index_interval_bytes=0))
        one = produced(1)
        ((position, header),) = validated(one)
        for _ in range(3):
            wide = [type(validated(one)[0])(position, header._replace(last_offset_delta=2**31 - 1))]
            log.append_produced(one, wide, NOW_MS)
        assert log.segment_count == 3

    async def test_quiet_segment_is_rolled_when_its_time_is_over(self, filesystem: MemoryFileSystem) -> None:
        log = await open_log(filesystem, config=LogConfig(segment_ms=100))
        assert not log.roll_if_due(NOW_MS + 1000)
        append(log, timestamp_ms=NOW_MS)
        assert not log.roll_if_due(NOW_MS + 100)
        assert log.roll_if_due(NOW_MS + 101)
        assert not log.roll_if_due(NOW_MS + 101)
        assert append(log).result().base_offset == 1
        assert log.segment_count == 2


async def test_end_of_an_epoch_is_bounded_by_the_high_watermark(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, leader_epoch=1)
    append(log, 3)
    append_deltas(log)
    assert log.end_offset_for_epoch(1) == (1, 3)
    log.leader_epoch = 2
    assert log.end_offset_for_epoch(1) == (1, 3)
    append(log)
    assert log.end_offset_for_epoch(1) == (1, 4)
    assert log.end_offset_for_epoch(2) == (2, 5)


async def test_page_that_cannot_be_read_fails_that_read_alone(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem)
    append(log)
    append_deltas(log)
    (entry,) = log.share_records.newest(group_hash("group"))
    filesystem.read_error = errno.EIO
    for read in (
        lambda: log.read(0, bytes_max=100),
        lambda: log.read_batches(0, records_max=1, bytes_max=100),
        lambda: log.share_records.read(entry),
    ):
        with pytest.raises(StorageError):
            read()
    for look_up in (offset_for_timestamp(log, 0), max_timestamp(log)):
        with pytest.raises(StorageError):
            await look_up
    filesystem.read_error = None
    assert len(values_read(log)) == 1


async def test_closed_log_serves_nothing(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem)
    append(log)
    await log.close()
    assert isinstance(append(log).error, LogClosed)
    with pytest.raises(LogClosed):
        log.read(0, bytes_max=100)
    with pytest.raises(LogClosed):
        await log.flush()


async def test_clean_close_waits_for_appends_under_way(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, storage=small_storage(flush=FlushPolicy.ALWAYS))
    appended = append(log)
    await log.close()
    assert (appended.error, log.recovery_point) == (None, 1)


async def test_an_offline_log_refuses_each_with_an_error_of_its_own(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem)
    filesystem.write_error = errno.EIO
    errors = [append(log).error, append(log).error]
    for _ in range(2):
        with pytest.raises(LogOffline) as refused:
            log.read(0, bytes_max=1)
        errors.append(refused.value)
    assert len(set(map(id, [*errors, log.offline]))) == 5
    assert {(type(error), str(error)) for error in errors} == {(LogOffline, str(log.offline))}
    assert len({id(error.__cause__) for error in errors if error is not None}) == 1
    assert log.offline is not None
    assert log.offline.__traceback__ is None, "the kept error was never raised"
