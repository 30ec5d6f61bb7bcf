"""Times that a topic doesn't take, record by record."""

import pytest

from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.record_batch import HEADER_BYTES, Compression, ProducedBatch, validate_produced
from barnabas.protocol.record_keys import RECORD_ERRORS_MAX, RecordsRejected
from barnabas.protocol.record_times import TimeBounds, check_times
from barnabas.protocol.record_walk import RECORDS_PER_STEP
from barnabas.protocol.records import Record, encode_records
from barnabas.storage.stepwise import do_at_once

NOW_MS = 1_700_000_000_000


def check(*times_ms: int, earliest_ms: int | None = None, latest_ms: int = NOW_MS) -> RecordsRejected | None:
    records = encode_records(
        [Record(offset, time_ms, None, b"v") for offset, time_ms in enumerate(times_ms)],
        compression=Compression.GZIP,
    )
    try:
        batches = validate_produced(records, message_bytes_max=10_000)
        do_at_once(check_times(records, batches, TimeBounds(earliest_ms, latest_ms)))
    except RecordsRejected as error:
        assert error.code is ErrorCode.invalid_timestamp
        return error
    return None


def test_times_within_the_bounds_pass() -> None:
    assert check(NOW_MS - 5, NOW_MS, earliest_ms=NOW_MS - 5) is None
    assert check(0, NOW_MS) is None


def test_each_wrong_time_is_named() -> None:
    rejected = check(NOW_MS, NOW_MS - 6, NOW_MS + 1, earliest_ms=NOW_MS - 5)
    assert rejected is not None
    within = f"is out of range. The timestamp should be within [{NOW_MS - 5}, {NOW_MS}]"
    assert rejected.record_errors == [
        (1, f"Timestamp {NOW_MS - 6} of message with offset 1 {within}"),
        (2, f"Timestamp {NOW_MS + 1} of message with offset 2 {within}"),
    ]


def test_a_time_to_come_is_wrong_whatever_the_past() -> None:
    rejected = check(5, NOW_MS + 1)
    assert rejected is not None
    assert [index for index, _ in rejected.record_errors] == [1]


def test_a_record_without_a_time_passes() -> None:
    assert check(-1, earliest_ms=NOW_MS) is None


def test_records_that_cannot_be_read_are_refused() -> None:
    records = bytearray(encode_records([Record(0, 5, None, b"v")]))
    batches = validate_produced(records, message_bytes_max=1000)
    records[HEADER_BYTES] = 0
    with pytest.raises(ApiError) as refused:
        do_at_once(check_times(records, batches, TimeBounds(6, NOW_MS)))
    assert refused.value.code is ErrorCode.invalid_record


def test_a_batch_that_states_a_later_time_than_its_records_is_refused() -> None:
    records = encode_records([Record(0, NOW_MS, None, b"v")])
    (batch,) = validate_produced(records, message_bytes_max=1000)
    wrong = batch._replace(header=batch.header._replace(max_timestamp_ms=NOW_MS + 9))
    with pytest.raises(ApiError, match="later than"):
        do_at_once(check_times(records, [wrong], TimeBounds(None, NOW_MS)))


def late(count: int) -> tuple[bytes, list[ProducedBatch]]:
    """So many records from the future, which take next to no bytes."""
    records = encode_records(
        [Record(n, NOW_MS + 1, None, None) for n in range(count)], compression=Compression.ZSTD
    )
    return records, validate_produced(records, message_bytes_max=100_000)


def test_no_more_than_a_bound_are_named_and_the_others_not_looked_at() -> None:
    steps = check_times(*late(3 * RECORDS_PER_STEP), TimeBounds(None, NOW_MS))
    with pytest.raises(RecordsRejected) as rejected:
        next(steps)
        next(steps)
    assert len(rejected.value.record_errors) == RECORD_ERRORS_MAX


def test_many_records_are_looked_into_in_steps() -> None:
    records = encode_records([Record(n, NOW_MS, None, None) for n in range(3 * RECORDS_PER_STEP)])
    batches = validate_produced(records, message_bytes_max=100_000)
    assert len(list(check_times(records, batches, TimeBounds(NOW_MS, NOW_MS)))) == 3
