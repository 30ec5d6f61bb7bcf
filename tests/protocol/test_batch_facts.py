"""The facts of the records in whole batches, and the bounds of the search for them."""

from __future__ import annotations

import pytest

from barnabas.protocol.batch_facts import NO_FACTS, facts_of_batch
from barnabas.protocol.record_batch import (
    HEADER_BYTES,
    Compression,
    ProducedBatch,
    log_append_time_header,
    read_header,
)
from barnabas.protocol.record_facts import RecordFacts
from barnabas.protocol.records import Record, encode_records
from barnabas.protocol.varint import RecordFormatError
from tests.pipeline.decoding.batches import COMMIT, marker, resealed

RECORDS = [
    Record(7, 1_000, b"key", b"value", (("due", b"500"),)),
    Record(8, 1_500, None, b"v" * 300),
    Record(30, 900, None, None, (("due", None),)),
]
FACTS = RecordFacts([0, 1, 23], [0, 500, -100], [b"500", None, None])


def facts(batch: bytes, *, records_max: int = 3, inflated_bytes_max: int = 1_000) -> RecordFacts | None:
    return facts_of_batch(
        batch,
        read_header(batch),
        b"due",
        records_max=records_max,
        inflated_bytes_max=inflated_bytes_max,
    )


@pytest.mark.parametrize("codec", list(Compression))
def test_a_batch_is_inflated_and_read(codec: Compression) -> None:
    assert facts(encode_records(RECORDS, compression=codec)) == FACTS


def test_a_batch_beyond_a_bound_is_not_read() -> None:
    batch = encode_records(RECORDS, compression=Compression.ZSTD)
    assert facts(batch, records_max=2) is None
    assert facts(batch, inflated_bytes_max=200) is None


def test_records_with_the_time_of_the_append_have_the_largest_timestamp_of_their_batch() -> None:
    batch = encode_records(RECORDS)
    stamped = (
        log_append_time_header(batch, ProducedBatch(0, read_header(batch)), 7, 0, 5_000)
        + batch[HEADER_BYTES:]
    )
    assert facts(stamped) == FACTS._replace(timestamp_deltas_ms=[4_000] * 3)


def test_a_marker_has_no_facts() -> None:
    assert facts(marker(9, 1, COMMIT)) == NO_FACTS


def test_a_malformed_record_is_an_error() -> None:
    with pytest.raises(RecordFormatError):
        facts(resealed(encode_records(RECORDS), b"\x10\0"))
