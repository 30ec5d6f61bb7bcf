"""Records inside batches, compared with librdkafka, Java, aiokafka and kafka-python."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder  # pyright: ignore[reportMissingTypeStubs]
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBatchBuilder

from barnabas.protocol.record_batch import (
    HEADER_BYTES,
    LOG_APPEND_TIME_FLAG,
    Compression,
    ProducedBatch,
    log_append_time_header,
    read_header,
    seal_batch,
)
from barnabas.protocol.record_walk import record_spans
from barnabas.protocol.records import Record, encode_records, iterate_records, record_of_span
from barnabas.protocol.varint import RecordFormatError
from tests.protocol.recorded_bytes import load_recorded

NOW_MS = 1_700_000_000_000
RECORDS = [
    Record(50, NOW_MS, b"key", b"value"),
    Record(51, NOW_MS - 7, None, b"x" * 300, (("name", b"1"), ("name", None), ("né", b""))),
    Record(53, NOW_MS + 99, b"", None),
]

record_lists = st.lists(
    st.tuples(
        st.integers(1, 2**31 // 20),
        st.integers(0, 2**41),
        st.none() | st.binary(max_size=90),
        st.none() | st.binary(max_size=90),
        st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3).map(tuple),
    ),
    min_size=1,
    max_size=10,
)


def body_of(*records: bytes, record_count: int | None = None) -> bytes:
    return seal_batch(
        b"".join(records),
        base_offset=0,
        leader_epoch=0,
        attributes=0,
        last_offset_delta=0,
        base_timestamp_ms=0,
        max_timestamp_ms=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=len(records) if record_count is None else record_count,
    )


@pytest.mark.parametrize("codec", Compression)
def test_records_survive_encoding_and_decoding(codec: Compression) -> None:
    batch = encode_records(RECORDS, compression=codec, leader_epoch=4)
    header = read_header(batch)
    assert (header.compression, header.leader_epoch, header.record_count) == (codec, 4, 3)
    assert (header.base_offset, header.last_offset, header.max_timestamp_ms) == (50, 53, NOW_MS + 99)
    assert list(iterate_records(b"before" + batch + b"after", 6)) == RECORDS


@given(record_lists)
def test_every_record_survives_encoding_and_decoding(drawn: list[tuple[int, int, Any, Any, Any]]) -> None:
    offset = 0
    records: list[Record] = []
    for step, timestamp_ms, key, value, headers in drawn:
        offset += step
        records.append(Record(offset, timestamp_ms, key, value, headers))
    assert list(iterate_records(memoryview(encode_records(records)))) == records


@pytest.mark.parametrize(
    "row", load_recorded("record_batches"), ids=lambda row: f"{row['producer']}-{row['codec']}"
)
def test_batches_of_real_producers_are_read(row: dict[str, Any]) -> None:
    expected = [
        Record(
            offset,
            timestamp_ms,
            None if key is None else key.encode(),
            value.encode(),
            tuple((name, None if text is None else text.encode()) for name, text in headers),
        )
        for offset, timestamp_ms, key, value, headers in row["records"]
    ]
    batch = bytes.fromhex(row["hex"])
    assert list(iterate_records(batch)) == expected
    if row["codec"] == "NONE":
        header = read_header(batch)
        assert batch == encode_records(
            expected,
            leader_epoch=header.leader_epoch,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
        )


@pytest.mark.parametrize("codec", Compression)
@pytest.mark.parametrize("builder_class", [DefaultRecordBatchBuilder, KafkaPythonBatchBuilder])
def test_batches_of_python_producers_are_read(builder_class: Any, codec: Compression) -> None:
    builder = builder_class(2, codec, 0, -1, -1, -1, 1 << 20)
    for offset in range(20):
        assert builder.append(offset, NOW_MS + offset, b"key", b"value" * offset, [("h", b"x")])
    assert list(iterate_records(bytes(builder.build()))) == [
        Record(offset, NOW_MS + offset, b"key", b"value" * offset, (("h", b"x"),)) for offset in range(20)
    ]


@pytest.mark.parametrize("codec", Compression)
def test_aiokafka_reads_an_encoded_batch(codec: Compression) -> None:
    theirs = DefaultRecordBatch(bytearray(encode_records(RECORDS, compression=codec)))
    assert theirs.validate_crc()
    assert [
        Record(record.offset, record.timestamp, record.key, record.value, tuple(record.headers))
        for record in theirs
    ] == RECORDS


def test_log_append_time_applies_to_every_record() -> None:
    batch = encode_records(RECORDS)
    header = log_append_time_header(batch, ProducedBatch(0, read_header(batch)), 50, 1, NOW_MS + 1000)
    records = list(iterate_records(header + batch[HEADER_BYTES:]))
    assert {record.timestamp_ms for record in records} == {NOW_MS + 1000}
    assert encode_records(RECORDS, attributes=LOG_APPEND_TIME_FLAG)[22] == LOG_APPEND_TIME_FLAG


def test_a_batch_that_is_cut_short_or_damaged_is_refused() -> None:
    batch = encode_records(RECORDS)
    for malformed in (batch[:60], batch[:-1], batch[:-1] + b"\xff", batch[:11] + b"\x05" + batch[12:]):
        with pytest.raises(RecordFormatError):
            list(iterate_records(malformed))


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_batch_with_an_unknown_codec_is_refused(codec: int) -> None:
    batch = encode_records(RECORDS, attributes=codec)
    with pytest.raises(RecordFormatError, match=f"has the unknown codec {codec}"):
        iterate_records(batch)


def test_a_batch_larger_than_allowed_is_refused() -> None:
    batch = encode_records([Record(0, 0, None, bytes(100_000))], compression=Compression.ZSTD)
    with pytest.raises(RecordFormatError, match="larger than"):
        list(iterate_records(batch, decompressed_bytes_max=50_000))


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        ("40 00 00 00 01 01 00", "doesn't fit"),
        ("01", "doesn't fit"),
        ("0c 00 00 00 40 01 00", "doesn't fit"),
        ("0c 00 00 00 01 01 40", "doesn't fit"),
        ("10 00 00 00 01 01 02 01 01", "without a name"),
        ("12 00 00 00 01 01 02 02 ff 01", "UTF-8"),
        ("0e 00 00 00 01 01 00 00", "after its end"),
    ],
)
def test_a_malformed_record_is_refused(record: str, complaint: str) -> None:
    with pytest.raises(RecordFormatError, match=complaint):
        list(iterate_records(body_of(bytes.fromhex(record))))


def test_a_wrong_record_count_is_refused() -> None:
    record = bytes.fromhex("0c 00 00 00 01 01 00")
    assert len(list(iterate_records(body_of(record)))) == 1
    for record_count in (0, 2):
        with pytest.raises(RecordFormatError):
            list(iterate_records(body_of(record, record_count=record_count)))


@pytest.mark.parametrize("attributes", [0, LOG_APPEND_TIME_FLAG])
def test_a_record_is_read_alone_as_with_all_others(attributes: int) -> None:
    batch = encode_records(RECORDS, attributes=attributes)
    header, body = read_header(batch), batch[HEADER_BYTES:]
    alone = [record_of_span(header, body, span) for span in record_spans(body, header.record_count)]
    assert alone == list(iterate_records(batch))
