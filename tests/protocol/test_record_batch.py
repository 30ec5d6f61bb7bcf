"""Record batches: headers, checksums, the refusals of produced batches, and batches built by the broker."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder  # pyright: ignore[reportMissingTypeStubs]
from crc32c import crc32c

from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.record_batch import (
    BATCH_SPAN,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    HEADER_BYTES,
    LOG_APPEND_TIME_FLAG,
    RECORD_COUNT_MAX,
    TRANSACTIONAL_FLAG,
    Compression,
    ProducedBatch,
    build_batch,
    encode_record,
    has_data,
    is_checksum_valid,
    iterate_headers,
    log_append_time_header,
    patched_prefix,
    read_header,
    seal_batch,
    validate_produced,
)
from barnabas.protocol.varint import Buffer, RecordFormatError
from tests.protocol.recorded_bytes import load_recorded

NOW_MS = 1_700_000_000_000
MESSAGE_BYTES_MAX = 1_048_588


def produced(
    record_count: int = 2, value: bytes = b"value", *, body: bytes | None = None, **fields: Any
) -> bytes:
    """A batch of equal records, or with another body."""
    if body is None:
        body = b"".join(encode_record(delta, 0, b"key", value) for delta in range(record_count))
    defaults: dict[str, Any] = {
        "base_offset": 0,
        "leader_epoch": -1,
        "attributes": 0,
        "last_offset_delta": record_count - 1,
        "base_timestamp_ms": NOW_MS,
        "max_timestamp_ms": NOW_MS,
        "producer_id": -1,
        "producer_epoch": -1,
        "base_sequence": -1,
        "record_count": record_count,
    }
    return seal_batch(body, **(defaults | fields))


def overwritten(batch: bytes, position: int, data: bytes) -> bytes:
    return batch[:position] + data + batch[position + len(data) :]


def with_length(batch: bytes, batch_length: int, size_bytes: int) -> bytes:
    return overwritten(batch, 8, struct.pack(">i", batch_length))[:size_bytes]


GOOD = produced()
LARGE = produced(1, bytes(MESSAGE_BYTES_MAX))


def refusal(records: Buffer, **options: Any) -> ErrorCode | None:
    options = {"message_bytes_max": MESSAGE_BYTES_MAX} | options
    try:
        validate_produced(records, **options)
    except ApiError as error:
        return error.code
    return None


def test_a_good_batch_is_found_at_the_start_with_its_header() -> None:
    (batch,) = validate_produced(memoryview(GOOD), message_bytes_max=len(GOOD))
    assert batch == ProducedBatch(0, read_header(GOOD))
    header = batch.header
    assert (header.record_count, header.last_offset, header.size_bytes) == (2, 1, len(GOOD))
    assert (header.base_timestamp_ms, header.max_timestamp_ms) == (NOW_MS, NOW_MS)
    assert header.compression is Compression.NONE
    assert not (header.is_control or header.is_transactional or header.log_append_time)


# Kafka 4.3.1 answered with these codes to the same bytes in a Produce request of version 7.
@pytest.mark.parametrize(
    ("name", "records", "code"),
    [
        ("nothing", b"", ErrorCode.invalid_record),
        ("less than a length", GOOD[:11], ErrorCode.invalid_record),
        ("no magic", GOOD[:16], ErrorCode.invalid_record),
        ("half a header", GOOD[:40], ErrorCode.invalid_record),
        ("a byte less than a header", GOOD[:60], ErrorCode.invalid_record),
        ("a byte less than stated", GOOD[:-1], ErrorCode.invalid_record),
        ("two batches", GOOD + GOOD, ErrorCode.invalid_record),
        ("a wrong checksum", overwritten(GOOD, 17, bytes(4)), ErrorCode.corrupt_message),
        ("a flipped bit", overwritten(GOOD, 70, b"\xff"), ErrorCode.corrupt_message),
        ("magic 0", overwritten(GOOD, 16, b"\x00"), ErrorCode.invalid_record),
        ("magic 1", overwritten(GOOD, 16, b"\x01"), ErrorCode.invalid_record),
        ("magic 3", overwritten(GOOD, 16, b"\x03"), ErrorCode.corrupt_message),
        ("magic -1", overwritten(GOOD, 16, b"\xff"), ErrorCode.corrupt_message),
        ("a negative length", with_length(GOOD, -5, 79), ErrorCode.corrupt_message),
        ("a length below that of any batch", with_length(GOOD, 10, 79), ErrorCode.corrupt_message),
        ("a length below that of a header", with_length(GOOD, 40, 52), ErrorCode.corrupt_message),
        ("a base offset", produced(base_offset=5), ErrorCode.invalid_record),
        (
            "a large batch with base offset",
            produced(1, bytes(2**20), base_offset=5),
            ErrorCode.invalid_record,
        ),
        (
            "more records than offsets",
            produced(record_count=3, last_offset_delta=1),
            ErrorCode.invalid_record,
        ),
        ("more offsets than records", produced(last_offset_delta=5), ErrorCode.invalid_record),
        ("no records", produced(0), ErrorCode.invalid_record),
        (
            "too many records",
            produced(RECORD_COUNT_MAX + 1, body=b"refused before it is read"),
            ErrorCode.message_too_large,
        ),
        ("too large", LARGE, ErrorCode.message_too_large),
        ("too large and corrupt", overwritten(LARGE, 17, bytes(4)), ErrorCode.message_too_large),
        ("a control batch", produced(attributes=CONTROL_FLAG), ErrorCode.invalid_record),
        ("no sequence number", produced(producer_id=7, producer_epoch=0), ErrorCode.invalid_record),
        (
            "a transaction that is not open",
            produced(attributes=TRANSACTIONAL_FLAG, producer_id=7, producer_epoch=0, base_sequence=0),
            ErrorCode.transactional_id_authorization_failed,
        ),
        ("an unused attribute", produced(attributes=0x80), None),
        ("a good batch", GOOD, None),
    ],
)
def test_a_malformed_batch_gets_kafkas_error_code(name: str, records: bytes, code: ErrorCode | None) -> None:
    assert refusal(records) is code, name


# Kafka repairs these batches, or fails on them.
@pytest.mark.parametrize(
    ("name", "records", "code"),
    [
        ("bytes after the batch", GOOD + bytes(5), ErrorCode.invalid_record),
        ("part of another batch", GOOD + GOOD[:30], ErrorCode.invalid_record),
        ("log append time", produced(attributes=LOG_APPEND_TIME_FLAG), ErrorCode.invalid_timestamp),
        ("codec 5", produced(attributes=5), ErrorCode.unsupported_compression_type),
        ("codec 7", produced(attributes=7), ErrorCode.unsupported_compression_type),
        ("a length below that of a header", with_length(GOOD, 20, 32), ErrorCode.corrupt_message),
    ],
)
def test_batches_that_kafka_would_repair_are_refused(name: str, records: bytes, code: ErrorCode) -> None:
    assert refusal(records) is code, name


def test_zstandard_is_refused_below_produce_version_7() -> None:
    batch = produced(attributes=Compression.ZSTD)
    assert refusal(batch, zstd_allowed=False) is ErrorCode.unsupported_compression_type
    assert refusal(batch, zstd_allowed=True) is None


def test_a_transactional_batch_is_accepted_if_its_transaction_is_open() -> None:
    batch = produced(attributes=TRANSACTIONAL_FLAG, producer_id=7, producer_epoch=0, base_sequence=0)
    assert refusal(batch, transactional_allowed=True) is None


def test_a_batch_of_exactly_the_allowed_size_is_accepted() -> None:
    assert refusal(GOOD, message_bytes_max=len(GOOD)) is None
    assert refusal(GOOD, message_bytes_max=len(GOOD) - 1) is ErrorCode.message_too_large


@pytest.mark.parametrize(
    "row", load_recorded("record_batches"), ids=lambda row: f"{row['producer']}-{row['codec']}"
)
def test_batches_of_real_producers_are_accepted_at_offset_0(row: dict[str, Any]) -> None:
    batch = bytes.fromhex(row["hex"])
    header = read_header(batch)
    assert header.compression.name == row["codec"]
    (produced_batch,) = validate_produced(
        patched_prefix(header, 0, -1) + batch[16:], message_bytes_max=MESSAGE_BYTES_MAX
    )
    assert produced_batch.header == header._replace(base_offset=0, leader_epoch=-1)


def test_offsets_and_leader_epoch_are_patched_without_touching_the_checksum() -> None:
    patched = patched_prefix(read_header(GOOD), 1234, 5) + GOOD[16:]
    header = read_header(patched)
    assert (header.base_offset, header.leader_epoch, header.last_offset) == (1234, 5, 1235)
    assert is_checksum_valid(patched, 0, header)


def test_log_append_time_replaces_the_header_with_a_new_checksum() -> None:
    records = b"before" + GOOD + b"after"
    batch = ProducedBatch(6, read_header(records, 6))
    rewritten = log_append_time_header(records, batch, 1234, 5, NOW_MS + 99) + GOOD[HEADER_BYTES:]
    header = read_header(rewritten)
    assert header == batch.header._replace(
        base_offset=1234,
        leader_epoch=5,
        attributes=LOG_APPEND_TIME_FLAG,
        max_timestamp_ms=NOW_MS + 99,
        crc=header.crc,
    )
    assert header.log_append_time
    assert is_checksum_valid(rewritten, 0, header)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [(0, NOW_MS), (LOG_APPEND_TIME_FLAG, NOW_MS + 50), (DELETE_HORIZON_FLAG, NOW_MS + 50)],
)
def test_the_time_of_the_first_record_is_in_the_header_unless_another_time_is_in_its_place(
    attributes: int, expected: int
) -> None:
    batch = produced(attributes=attributes, base_timestamp_ms=NOW_MS, max_timestamp_ms=NOW_MS + 50)
    assert read_header(batch).first_timestamp_ms == expected


def test_headers_are_walked_with_their_positions() -> None:
    first, second, third = produced(1), produced(3), produced(2, bytes(1000))
    log = first + second + third
    walked = list(iterate_headers(log))
    assert [position for position, _ in walked] == [0, len(first), len(first + second)]
    assert [header.record_count for _, header in walked] == [1, 3, 2]
    assert list(iterate_headers(memoryview(log))) == walked


@pytest.mark.parametrize("missing_bytes", [1, 30, len(GOOD) - HEADER_BYTES, len(GOOD) - 1])
def test_a_batch_that_is_cut_short_ends_the_walk(missing_bytes: int) -> None:
    walked = list(iterate_headers((GOOD + GOOD)[:-missing_bytes]))
    assert [position for position, _ in walked] == [0]


@pytest.mark.parametrize("batch_length", [-100, 0, 48])
def test_an_impossible_length_is_an_error(batch_length: int) -> None:
    walk = iterate_headers(GOOD + with_length(GOOD, batch_length, len(GOOD)))
    assert next(walk)[0] == 0
    with pytest.raises(RecordFormatError, match="length"):
        next(walk)


def test_a_header_that_is_cut_short_cannot_be_read() -> None:
    with pytest.raises(RecordFormatError, match="cut short"):
        read_header(GOOD, len(GOOD) - 60)


def test_a_span_has_the_fields_of_the_header() -> None:
    batch = build_batch(7, [(None, b"v")], leader_epoch=3, timestamp_ms=NOW_MS, producer_id=9)
    header = read_header(batch)
    assert BATCH_SPAN.unpack_from(batch) == (
        header.base_offset,
        header.batch_length,
        header.magic,
        header.attributes,
        header.last_offset_delta,
        header.max_timestamp_ms,
        header.producer_id,
    )


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        (produced(2), True),
        (produced(2, attributes=TRANSACTIONAL_FLAG), True),
        (produced(1, attributes=TRANSACTIONAL_FLAG | CONTROL_FLAG), False),
        (produced(0, body=b"", last_offset_delta=1), False),
    ],
    ids=["records", "records of a transaction", "marker", "emptied by compaction"],
)
def test_a_batch_has_data_unless_it_is_a_control_batch_or_empty(batch: bytes, expected: bool) -> None:
    assert has_data(GOOD + batch, len(GOOD)) is expected


def test_a_built_batch_equals_that_of_aiokafka() -> None:
    records = [(b"key", b"value"), (None, b"x" * 500), (b"", None), (None, None)] * 40
    builder = DefaultRecordBatchBuilder(2, 0, 0, 77, 3, 12, 1 << 20)
    for offset, (key, value) in enumerate(records):
        assert builder.append(offset, NOW_MS, key, value, []) is not None
    expected = bytes(builder.build())
    built = build_batch(
        0, records, leader_epoch=-1, timestamp_ms=NOW_MS, producer_id=77, producer_epoch=3, base_sequence=12
    )
    assert built == expected


def test_a_built_batch_is_read_by_aiokafka() -> None:
    built = build_batch(40, [(b"key", b"value"), (None, None)], leader_epoch=2, timestamp_ms=NOW_MS)
    batch = DefaultRecordBatch(bytearray(built))
    assert batch.validate_crc()
    assert [(record.offset, record.timestamp, record.key, record.value) for record in batch] == [
        (40, NOW_MS, b"key", b"value"),
        (41, NOW_MS, None, None),
    ]


def test_the_checksum_covers_everything_from_the_attributes_on() -> None:
    header = read_header(GOOD)
    assert header.crc == crc32c(GOOD[21:])
    assert not is_checksum_valid(overwritten(GOOD, len(GOOD) - 1, b"!"), 0, header)
