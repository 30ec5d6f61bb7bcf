"""Batches from which a member has acquired only some records."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from barnabas.protocol.compression import compress
from barnabas.protocol.record_batch import (
    Compression,
    build_batch,
    is_checksum_valid,
    iterate_headers,
    read_header,
    reseal_batch,
)
from barnabas.protocol.records import iterate_records
from barnabas.protocol.varint import Buffer
from barnabas.share.leader.delivered_batches import DeliveredBatches, delivered_batches
from barnabas.storage.reading.log_slice import BatchSlice, BatchSpan

RECORD_COUNT = 10
VALUE = bytes(100)


def batch(base_offset: int, codec: Compression = Compression.NONE) -> bytes:
    records = [(b"key-%d" % number, VALUE) for number in range(RECORD_COUNT)]
    plain = build_batch(base_offset, records, leader_epoch=0, timestamp_ms=1)
    header = read_header(plain)
    if codec is Compression.NONE:
        return plain
    body = compress(codec, plain[61:])
    return reseal_batch(header._replace(attributes=header.attributes | codec), body)


def slice_of(*batches: bytes) -> BatchSlice:
    spans: list[BatchSpan] = []
    position = 0
    for one in batches:
        header = read_header(one)
        spans.append(BatchSpan(header.base_offset, header.last_offset, position, position + len(one)))
        position += len(one)
    return BatchSlice(spans, memoryview(b"".join(batches)))


def delivered(read: Sequence[BatchSlice], *ranges: tuple[int, int]) -> DeliveredBatches:
    return delivered_batches(read, [(first, last, 1) for first, last in ranges])


def offsets(buffers: Sequence[Buffer]) -> list[int]:
    data = b"".join(buffers)
    found: list[int] = []
    for position, header in iterate_headers(data):
        assert is_checksum_valid(data, position, header)
        found += (one.offset for one in iterate_records(data[position:]))
    return found


def test_a_batch_whose_records_are_all_delivered_is_not_copied() -> None:
    read = slice_of(batch(0))
    buffers, undelivered_bytes = delivered([read], (0, 9))
    assert [bytes(one) for one in buffers] == [bytes(read.data)]
    assert undelivered_bytes == 0


def test_adjoining_whole_batches_are_one_piece() -> None:
    assert len(delivered([slice_of(batch(0), batch(10))], (0, 19)).buffers) == 1


def test_batches_without_delivered_records_are_left_out() -> None:
    read = slice_of(batch(0), batch(10), batch(20))
    assert offsets(delivered([read], (0, 9), (20, 29)).buffers) == [*range(10), *range(20, 30)]


def test_a_batch_goes_out_whole_if_half_of_its_records_are_delivered() -> None:
    whole = batch(0)
    buffers, undelivered_bytes = delivered([slice_of(whole)], (0, 2), (5, 6))
    assert offsets(buffers) == list(range(10))
    assert undelivered_bytes == len(whole) // 2


def test_a_batch_is_reduced_to_a_few_delivered_records() -> None:
    buffers, undelivered_bytes = delivered([slice_of(batch(30))], (31, 31), (35, 36))
    assert offsets(buffers) == [31, 35, 36]
    assert undelivered_bytes == 0
    header = read_header(bytes(buffers[0]))
    assert (header.base_offset, header.last_offset, header.record_count) == (30, 39, 3)


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.LZ4, Compression.SNAPPY, Compression.ZSTD])
def test_a_compressed_batch_is_reduced_only_if_it_becomes_shorter(codec: Compression) -> None:
    whole = batch(0, codec)
    few = delivered([slice_of(whole)], (3, 3))
    assert sum(map(len, few.buffers)) <= len(whole)
    assert 3 in offsets(few.buffers)


def test_a_range_over_two_batches_is_cut_between_them() -> None:
    buffers, _ = delivered([slice_of(batch(0), batch(10))], (8, 11))
    assert offsets(buffers) == [8, 9, 10, 11]


def test_reads_that_follow_each_other_are_delivered_in_their_order() -> None:
    buffers, _ = delivered([slice_of(batch(0)), slice_of(batch(20))], (1, 1), (22, 22))
    assert offsets(buffers) == [1, 22]


def test_a_record_that_compaction_has_removed_meanwhile_sends_the_whole_batch() -> None:
    read = slice_of(batch(0))
    header = read_header(bytes(read.data))
    wider = reseal_batch(header._replace(last_offset_delta=20), bytes(read.data)[61:])
    assert offsets(delivered([slice_of(wider)], (3, 3), (15, 15)).buffers) == list(range(10))
