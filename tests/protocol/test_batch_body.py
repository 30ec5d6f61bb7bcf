"""The bodies of batches, and the positions of the records in them."""

from __future__ import annotations

import pytest

from barnabas.protocol.batch_body import batch_body
from barnabas.protocol.record_batch import Compression, read_header
from barnabas.protocol.record_walk import record_spans
from barnabas.protocol.records import Record, encode_records
from barnabas.protocol.varint import RecordFormatError, read_zigzag_varint

RECORDS = [
    Record(7, 1_000, b"key", b"value", (("name", b"header"), ("none", None))),
    Record(8, 1_500, None, b"v" * 300),
    Record(300, 900, b"k" * 200, None),
    Record(301, 900, b"", b""),
]


@pytest.mark.parametrize("codec", list(Compression))
def test_spans_have_the_fields_of_the_records(codec: Compression) -> None:
    batch = encode_records(RECORDS, compression=codec)
    body = batch_body(batch, read_header(batch))
    spans = list(record_spans(body, len(RECORDS)))
    assert [7 + span.offset_delta for span in spans] == [record.offset for record in RECORDS]
    assert [1_000 + span.timestamp_delta_ms for span in spans] == [record.timestamp_ms for record in RECORDS]
    assert [span.key for span in spans] == [record.key for record in RECORDS]
    assert [span.has_value for span in spans] == [True, True, False, True]


def test_spans_have_the_positions_of_the_records() -> None:
    batch = encode_records(RECORDS)
    body = batch_body(batch, read_header(batch))
    spans = list(record_spans(body, len(RECORDS)))
    assert b"".join(body[span.start : span.end] for span in spans) == body
    for span in spans:
        assert read_zigzag_varint(body, span.start) == (span.end - span.content, span.content)
        assert read_zigzag_varint(body, span.rest)[0] == span.offset_delta


@pytest.mark.parametrize("cut", range(1, 40))
def test_records_that_are_cut_short_are_an_error(cut: int) -> None:
    batch = encode_records(RECORDS[:1])
    body = batch_body(batch, read_header(batch))
    with pytest.raises(RecordFormatError):
        list(record_spans(body[:-cut], 1))


def test_bytes_after_the_last_record_are_an_error() -> None:
    batch = encode_records(RECORDS[:2])
    with pytest.raises(RecordFormatError, match="after the last"):
        list(record_spans(batch_body(batch, read_header(batch)), 1))


def test_fields_that_do_not_fit_their_record_are_an_error() -> None:
    batch = encode_records([Record(0, 0, b"k", b"v")])
    body = bytearray(batch_body(batch, read_header(batch)))
    body[4] = 60  # the key's length
    with pytest.raises(RecordFormatError):
        list(record_spans(bytes(body), 1))


def test_an_unknown_codec_is_an_error() -> None:
    batch = encode_records(RECORDS)
    header = read_header(batch)
    with pytest.raises(RecordFormatError, match="codec 5"):
        batch_body(batch, header._replace(attributes=5))
