"""Times that a topic doesn't take, record by record."""

import pytest

from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.record_batch import HEADER_BYTES, Compression, validate_produced
from barnabas.protocol.record_keys import RecordsRejected
from barnabas.protocol.record_times import TimeBounds, check_times
from barnabas.protocol.records import Record, encode_records

NOW_MS = 1_700_000_000_000


def check(*times_ms: int, earliest_ms: int | None = None, latest_ms: int = NOW_MS) -> RecordsRejected | None:
    records = encode_records(
        [Record(offset, time_ms, None, b"v") for offset, time_ms in enumerate(times_ms)],
        compression=Compression.GZIP,
    )
    try:
        check_times(
            records, validate_produced(records, message_bytes_max=10_000), TimeBounds(earliest_ms, latest_ms)
        )
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
        check_times(records, batches, TimeBounds(6, NOW_MS))
    assert refused.value.code is ErrorCode.invalid_record


def test_a_batch_that_states_a_later_time_than_its_records_is_refused() -> None:
    records = encode_records([Record(0, NOW_MS, None, b"v")])
    (batch,) = validate_produced(records, message_bytes_max=1000)
    wrong = batch._replace(header=batch.header._replace(max_timestamp_ms=NOW_MS + 9))
    with pytest.raises(ApiError, match="later than"):
        check_times(records, [wrong], TimeBounds(None, NOW_MS))
