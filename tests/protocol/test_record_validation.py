"""The messages and codes for a batch's refused records."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.record_batch import BatchHeader, encode_record, read_header, seal_batch
from barnabas.protocol.record_validation import RecordsRejected, refuse_records
from barnabas.protocol.record_walk import RECORD_ERRORS_MAX, RecordRules, check_records

NOW_MS = 1_700_000_000_000
RULES = RecordRules(keys_required=True, times=(NOW_MS - 5, NOW_MS), record_bytes_max=1000)


def header_of(record_count: int, *, producer_id: int = -1) -> BatchHeader:
    batch = seal_batch(
        b"",
        base_offset=0,
        leader_epoch=-1,
        attributes=0,
        last_offset_delta=record_count - 1,
        base_timestamp_ms=NOW_MS,
        max_timestamp_ms=NOW_MS,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=40,
        record_count=record_count,
    )
    return read_header(batch)


def refusal(
    *records: bytes, record_count: int | None = None, producer_id: int = -1
) -> RecordsRejected | None:
    count = len(records) if record_count is None else record_count
    header = header_of(count, producer_id=producer_id)
    try:
        refuse_records(header, check_records(b"".join(records), count, NOW_MS, RULES), RULES)
    except RecordsRejected as error:
        return error
    return None


def record(offset_delta: int, timestamp_delta_ms: int = 0, key: bytes | None = b"k") -> bytes:
    return encode_record(offset_delta, timestamp_delta_ms, key, b"v")


def test_records_that_keep_the_rules_pass() -> None:
    assert refusal(record(0), record(1, -5)) is None


def test_a_malformed_batch_is_described_with_its_producer_and_the_faulty_record() -> None:
    refused = refusal(record(0), record(5), producer_id=7)
    assert refused is not None
    assert refused.code is ErrorCode.invalid_record
    assert refused.message == (
        "The batch of 2 records from producer 7 with sequence 40 is malformed: "
        "its record 1 has an offset that is out of order."
    )
    assert refused.record_errors == [(1, "The record has an offset that is out of order.")]


def test_bytes_after_the_last_record_are_no_error_of_a_record() -> None:
    refused = refusal(record(0), record(1), record_count=1)
    assert refused is not None
    assert refused.message == "The batch of 1 records has bytes after its last record."
    assert not refused.record_errors


def test_records_without_a_key_are_named() -> None:
    refused = refusal(record(0, key=None), record(1), record(2, key=None))
    assert refused is not None
    assert (refused.code, refused.message) == (ErrorCode.invalid_record, "2 of 3 records have no key.")
    assert [index for index, _ in refused.record_errors] == [0, 2]


def test_the_number_of_named_records_is_bounded() -> None:
    refused = refusal(*(record(index, key=None) for index in range(RECORD_ERRORS_MAX + 1)))
    assert refused is not None
    count = RECORD_ERRORS_MAX + 1
    assert refused.message == f"{count} of {count} records have no key."
    assert len(refused.record_errors) == RECORD_ERRORS_MAX


def test_a_wrong_time_decides_the_code() -> None:
    refused = refusal(record(0, key=None), record(1, -6), record(2, 1))
    assert refused is not None
    assert refused.code is ErrorCode.invalid_timestamp
    within = f"is out of range. The timestamp should be within [{NOW_MS - 5}, {NOW_MS}]"
    assert refused.record_errors[1:] == [
        (1, f"Timestamp {NOW_MS - 6} of message with offset 1 {within}"),
        (2, f"Timestamp {NOW_MS + 1} of message with offset 2 {within}"),
    ]


@pytest.mark.parametrize("key", [b"", b"k"])
def test_an_empty_key_is_a_key(key: bytes) -> None:
    assert refusal(record(0, key=key)) is None
