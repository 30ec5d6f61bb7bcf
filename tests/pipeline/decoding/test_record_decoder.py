"""The records that a decoder takes from valid batches; each test is run with both decoders."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.pipeline import decoding
from barnabas.pipeline.decoding import DECODED_COLUMNS, TAKEN_BYTES_MAX, OffsetRange, _native, _python
from barnabas.protocol.record_batch import (
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    LOG_APPEND_TIME_FLAG,
    Compression,
    encode_record,
)
from barnabas.protocol.records import Record, encode_records
from tests.pipeline.decoding.batches import NOW_MS, RECORDS, of_offsets, sealed
from tests.pipeline.decoding.decoders import DECODER_NAMES, DECODERS, column_lists, outcome, rows

Decoder = type[_python.RecordDecoder]
FURTHEST_MS = 2**63 // 1000
both = pytest.mark.parametrize("decoder", DECODERS, ids=DECODER_NAMES)


def test_the_native_decoder_was_built_and_is_the_one_in_use() -> None:
    assert decoding.RecordDecoder is _native.RecordDecoder
    assert (_native.RecordDecoder.is_native, _python.RecordDecoder.is_native) == (True, False)


@both
@pytest.mark.parametrize("codec", Compression)
def test_every_field_comes_back_unchanged(decoder: Decoder, codec: Compression) -> None:
    found = outcome(decoder, encode_records(RECORDS, compression=codec))
    assert found.columns == {
        "key": [b"key", None, b""],
        "value": [b"value", b"x" * 300, None],
        "offset": [50, 51, 53],
        "timestamp": [1000 * NOW_MS, 1000 * (NOW_MS - 7), 1000 * (NOW_MS + 99)],
        "timestampType": [0, 0, 0],
        "headers": [
            [],
            [{"key": "name", "value": b"1"}, {"key": "name", "value": None}, {"key": "né", "value": b""}],
            [],
        ],
        "deliveryCount": [0, 0, 0],
    }
    assert (found.record_count, found.next_offset) == (3, 54)


@both
def test_the_columns_have_the_wanted_order(decoder: Decoder) -> None:
    assert rows(decoder, of_offsets(3, 4), "value", "offset") == [(b"3", 3), (b"4", 4)]


@both
def test_rows_are_counted_without_columns(decoder: Decoder) -> None:
    nothing = decoder([])
    nothing.add(of_offsets(3, 4))
    assert nothing.take().num_rows == 2


@both
def test_the_brokers_time_holds_for_each_record(decoder: Decoder) -> None:
    record = encode_record(0, -5, None, b"")
    batch = sealed(record, attributes=LOG_APPEND_TIME_FLAG, timestamp_ms=17, max_timestamp_ms=99)
    assert rows(decoder, batch, "timestamp", "timestampType") == [(99_000, 1)]


@both
@pytest.mark.parametrize(
    ("base_ms", "delta_ms", "timestamp_us"),
    [
        (-1, 0, -1000),
        (-5, 7, 2000),
        (0, -3, -3000),
        (0, 0, 0),
        (-FURTHEST_MS, 0, -FURTHEST_MS * 1000),
        (FURTHEST_MS, 0, FURTHEST_MS * 1000),
    ],
)
def test_times_may_lie_before_1970(decoder: Decoder, base_ms: int, delta_ms: int, timestamp_us: int) -> None:
    batch = sealed(encode_record(0, delta_ms, None, b""), timestamp_ms=base_ms)
    assert rows(decoder, batch, "timestamp") == [(timestamp_us,)]


@both
def test_a_delete_horizon_is_a_base_time_like_another(decoder: Decoder) -> None:
    batch = sealed(encode_record(0, 5, b"k", None), attributes=DELETE_HORIZON_FLAG, timestamp_ms=100)
    assert rows(decoder, batch, "key", "value", "timestamp") == [(b"k", None, 105_000)]


@both
def test_a_compacted_batch_has_fewer_records_than_offsets(decoder: Decoder) -> None:
    body = encode_record(2, 0, b"a", b"") + encode_record(7, 0, b"b", b"")
    batch = sealed(body, base_offset=100, last_offset_delta=9, record_count=2)
    found = outcome(decoder, batch)
    assert (found.columns["offset"], found.next_offset) == ([102, 107], 110)


@both
@pytest.mark.parametrize("attributes", [0, Compression.GZIP], ids=["plain", "gzip"])
def test_a_batch_without_records_moves_the_next_offset(decoder: Decoder, attributes: int) -> None:
    batch = sealed(b"", base_offset=100, last_offset_delta=9, record_count=0, attributes=attributes)
    found = outcome(decoder, batch)
    assert (found.position, found.record_count, found.next_offset) == (len(batch), 0, 110)


@both
@pytest.mark.parametrize("kind", [0, 1, 5, 6], ids=["abort", "commit", "checkpoint", "delta"])
def test_control_batches_are_passed_over(decoder: Decoder, kind: int) -> None:
    record = encode_record(0, 0, b"\0\0\0" + bytes([kind]), b"anything")
    control = sealed(record, base_offset=1, attributes=CONTROL_FLAG)
    found = outcome(decoder, of_offsets(0) + control + of_offsets(2))
    assert (found.columns["offset"], found.next_offset) == ([0, 2], 3)


@both
def test_a_name_that_is_not_utf_8_gets_replacement_characters(decoder: Decoder) -> None:
    headers = b"\x04" + b"\x06a\xffb\x02v" + b"\x02n\x01"
    batch = sealed(encode_record(0, 0, None, None, headers))
    assert rows(decoder, batch, "headers") == [
        ([{"key": "a\ufffdb", "value": b"v"}, {"key": "n", "value": None}],)
    ]


@both
def test_headers_are_read_only_if_they_are_wanted(decoder: Decoder) -> None:
    batch = sealed(encode_record(0, 0, b"k", b"v", b"nonsense"))
    assert rows(decoder, batch, "key", "value") == [(b"k", b"v")]
    assert outcome(decoder, batch, ["headers"]).error is not None


RANGES: list[tuple[list[OffsetRange], list[tuple[int, int]]]] = [
    ([(0, 99, 1)], [(2, 1), (3, 1), (5, 1), (6, 1), (8, 1)]),
    ([(3, 3, 1), (5, 6, 2)], [(3, 1), (5, 2), (6, 2)]),
    ([(4, 4, 1), (7, 7, 1)], []),
    ([(0, 2, 3), (8, 8, 4)], [(2, 3), (8, 4)]),
    ([(3, 5, 2), (6, 2**63 - 1, 1)], [(3, 2), (5, 2), (6, 1), (8, 1)]),
    ([], []),
]


@both
@pytest.mark.parametrize(("ranges", "expected"), RANGES)
def test_only_offsets_in_the_ranges_are_taken(decoder: Decoder, ranges: Any, expected: Any) -> None:
    data = of_offsets(2, 3, 5) + of_offsets(6, 8)
    assert rows(decoder, data, "offset", "deliveryCount", ranges=ranges) == expected


@both
def test_ranges_hold_for_batches_out_of_order_too(decoder: Decoder) -> None:
    data = of_offsets(8, 9) + of_offsets(2, 3) + of_offsets(5)
    ranges = [(3, 4, 1), (5, 8, 2)]
    assert rows(decoder, data, "offset", "deliveryCount", ranges=ranges) == [(8, 2), (3, 1), (5, 2)]


@both
@pytest.mark.parametrize(
    "ranges",
    [
        [(5, 4, 1)],
        [(0, 4, 1), (4, 5, 1)],
        [(3, 3, 1), (1, 1, 1)],
        [(-1, 3, 1)],
        [(0, 2**63, 1)],
        [(0, 1, -1)],
    ],
)
def test_ranges_that_do_not_ascend_are_refused(decoder: Decoder, ranges: Any) -> None:
    with pytest.raises(ValueError, match=r"range|count"):
        decoder(["offset"]).add(of_offsets(1), ranges=ranges)


@both
def test_only_records_between_the_two_times_are_taken(decoder: Decoder) -> None:
    times = (NOW_MS + 3, NOW_MS + 6)
    assert rows(decoder, of_offsets(2, 3, 5) + of_offsets(6, 7), "offset", timestamps=times) == [
        (3,),
        (5,),
        (6,),
    ]


@both
def test_a_batch_that_is_cut_short_waits_for_its_end(decoder: Decoder) -> None:
    first, second = of_offsets(1), of_offsets(2)
    for cut in range(len(second)):
        found = outcome(decoder, first + second[:cut])
        assert (found.position, found.columns["offset"], found.next_offset) == (len(first), [1], 2)


@both
def test_a_span_of_the_buffer_is_gone_through(decoder: Decoder) -> None:
    batch = of_offsets(1)
    data = bytearray(b"before" + batch + batch)
    assert outcome(decoder, data, start=6, end=6 + len(batch)).position == 6 + len(batch)
    assert outcome(decoder, memoryview(data), start=6).columns["offset"] == [1, 1]
    assert outcome(decoder, data, start=6, end=6).record_count == 0


@both
@pytest.mark.parametrize(("start", "end"), [(-1, None), (2, 1), (0, 2**40), (2**70, None), (99, None)])
def test_a_span_outside_of_the_buffer_is_refused(decoder: Decoder, start: int, end: int | None) -> None:
    with pytest.raises(ValueError, match="is not within"):
        decoder(["offset"]).add(b"12345", start, end)


@both
def test_a_full_decoder_takes_nothing_until_it_is_emptied(decoder: Decoder) -> None:
    small = decoder(["offset"], taken_bytes_max=16)
    data = of_offsets(1) + of_offsets(2, 3) + of_offsets(4)
    position = small.add(data)
    assert (small.is_full, small.record_count, small.size_bytes, small.next_offset) == (True, 3, 24, 4)
    assert small.add(data, position) == position
    assert small.take().num_rows == 3
    assert (small.is_full, small.record_count, small.size_bytes) == (False, 0, 0)
    assert small.add(data, position) == len(data)
    assert column_lists(small.take()) == {"offset": [4]}


@both
def test_taken_rows_stay_unchanged_while_the_decoder_goes_on(decoder: Decoder) -> None:
    going_on = decoder(DECODED_COLUMNS)
    going_on.add(encode_records(RECORDS))
    first = going_on.take()
    before = column_lists(first)
    for _ in range(3):
        going_on.add(of_offsets(*range(100)))
        going_on.take()
    assert column_lists(first) == before


@both
@pytest.mark.parametrize("columns", [["offset", "offset"], ["topic"], ["Offset"]])
def test_columns_that_are_doubled_or_unknown_are_refused(decoder: Decoder, columns: list[str]) -> None:
    with pytest.raises(ValueError, match="each once"):
        decoder(columns)


@both
@pytest.mark.parametrize("bounds", [(0, 1), (1, 0), (2**31, 1), (TAKEN_BYTES_MAX, 2**30)])
def test_bounds_that_an_arrow_array_cannot_hold_are_refused(
    decoder: Decoder, bounds: tuple[int, int]
) -> None:
    with pytest.raises(ValueError, match="bytes_max"):
        decoder(["value"], taken_bytes_max=bounds[0], decompressed_bytes_max=bounds[1])


@both
def test_columns_grow_over_many_batches(decoder: Decoder) -> None:
    records = [
        Record(n, NOW_MS, b"k%d" % n if n % 3 else None, b"v" * (n % 50), ((f"h{n}", b"%d" % n),))
        for n in range(3000)
    ]
    batches = [encode_records(records[n : n + 40]) for n in range(0, 3000, 40)]
    expected = [
        (r.offset, r.key, r.value, [{"key": r.headers[0][0], "value": r.headers[0][1]}]) for r in records
    ]
    assert rows(decoder, b"".join(batches), "offset", "key", "value", "headers") == expected
