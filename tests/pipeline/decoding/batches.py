"""Batches to decode: as a broker writes them, and wrong ones under a checksum that is right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hypothesis import strategies as st

from barnabas.protocol.record_batch import (
    CONTROL_FLAG,
    HEADER_BYTES,
    LOG_APPEND_TIME_FLAG,
    TRANSACTIONAL_FLAG,
    Compression,
    encode_record,
    read_header,
    seal_batch,
)
from barnabas.protocol.records import Record, encode_records

NOW_MS: Final = 1_700_000_000_000
RECORDS: Final = [
    Record(50, NOW_MS, b"key", b"value"),
    Record(51, NOW_MS - 7, None, b"x" * 300, (("name", b"1"), ("name", None), ("né", b""))),
    Record(53, NOW_MS + 99, b"", None),
]
ABORT: Final = b"\0\0\0\0"
COMMIT: Final = b"\0\0\0\1"


def sealed(
    body: bytes,
    *,
    base_offset: int = 0,
    attributes: int = 0,
    last_offset_delta: int = 0,
    timestamp_ms: int = NOW_MS,
    max_timestamp_ms: int | None = None,
    producer_id: int = -1,
    record_count: int = 1,
) -> bytes:
    """A batch around any body, with the right checksum."""
    return seal_batch(
        body,
        base_offset=base_offset,
        leader_epoch=0,
        attributes=attributes,
        last_offset_delta=last_offset_delta,
        base_timestamp_ms=timestamp_ms,
        max_timestamp_ms=timestamp_ms if max_timestamp_ms is None else max_timestamp_ms,
        producer_id=producer_id,
        producer_epoch=-1 if producer_id < 0 else 0,
        base_sequence=-1,
        record_count=record_count,
    )


def resealed(batch: bytes, body: bytes) -> bytes:
    """`batch` with another body."""
    header = read_header(batch)
    return sealed(
        body,
        base_offset=header.base_offset,
        attributes=header.attributes,
        last_offset_delta=header.last_offset_delta,
        timestamp_ms=header.base_timestamp_ms,
        max_timestamp_ms=header.max_timestamp_ms,
        producer_id=header.producer_id,
        record_count=header.record_count,
    )


def marker(offset: int, producer_id: int, key: bytes) -> bytes:
    """The end of a transaction; `key` is ABORT or COMMIT."""
    attributes = TRANSACTIONAL_FLAG | CONTROL_FLAG
    record = encode_record(0, 0, key, b"\0\0\0\0\0\0")
    return sealed(record, base_offset=offset, attributes=attributes, producer_id=producer_id)


def transactional(offset: int, producer_id: int, value: bytes = b"value") -> bytes:
    """One record of a transaction."""
    records = [Record(offset, NOW_MS, None, value)]
    return encode_records(records, attributes=TRANSACTIONAL_FLAG, producer_id=producer_id)


def of_offsets(*offsets: int) -> bytes:
    """A batch of these offsets, which are the values too."""
    return encode_records([Record(offset, NOW_MS + offset, None, b"%d" % offset) for offset in offsets])


_bytes = st.binary(max_size=90)
_headers = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3).map(tuple)
_steps = st.tuples(
    st.one_of(st.just(1), st.integers(1, 50)),
    st.integers(-1, 2**41),
    st.none() | _bytes,
    st.none() | _bytes,
    _headers,
)
_attributes = st.sampled_from([0, 0, LOG_APPEND_TIME_FLAG, TRANSACTIONAL_FLAG])


@st.composite
def logs(
    draw: st.DrawFn, *, kinds: Sequence[str] = ("records", "records", "empty", "marker", "share")
) -> list[bytes]:
    """Batches by ascending offset, with holes as compaction leaves them, and control batches between."""
    batches: list[bytes] = []
    offset = draw(st.sampled_from([0, 2**40]))
    for kind in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=6)):
        offset += draw(st.integers(0, 3))
        batches.append(draw(_batch(kind, offset)))
        offset = read_header(batches[-1]).last_offset + 1
    return batches


@st.composite
def _batch(draw: st.DrawFn, kind: str, offset: int) -> bytes:
    producer_id = draw(st.integers(1, 3))
    if kind == "marker":
        return marker(offset, producer_id, draw(st.sampled_from([ABORT, COMMIT])))
    if kind == "share":
        return sealed(encode_record(0, 0, b"\0\0\0\5", b"state"), base_offset=offset, attributes=CONTROL_FLAG)
    if kind == "empty":
        return sealed(b"", base_offset=offset, last_offset_delta=draw(st.integers(0, 5)), record_count=0)
    return draw(_record_batch(offset, producer_id))


@st.composite
def _record_batch(draw: st.DrawFn, offset: int, producer_id: int) -> bytes:
    records: list[Record] = []
    for step, timestamp_ms, key, value, headers in draw(st.lists(_steps, min_size=1, max_size=6)):
        records.append(Record(offset, timestamp_ms, key, value, headers))
        offset += step
    codec, attributes = draw(st.sampled_from(Compression)), draw(_attributes)
    return encode_records(records, compression=codec, attributes=attributes, producer_id=producer_id)


def body_of(batch: bytes) -> bytes:
    return batch[HEADER_BYTES:]


@st.composite
def damages(draw: st.DrawFn, body: bytes) -> bytes:
    """Bytes changed, cut off or put in."""
    start = draw(st.integers(0, len(body)))
    end = draw(st.integers(start, min(start + 12, len(body))))
    return body[:start] + draw(st.binary(max_size=12)) + body[end:]
