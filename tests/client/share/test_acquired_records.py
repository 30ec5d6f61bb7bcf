"""Records, gaps and unreadable batches from a fetch's bytes and acquired offsets."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from barnabas.client.share.acquired_records import AcquiredRange, AcquiredRecords, read_acquired
from barnabas.protocol.record_batch import CONTROL_FLAG, HEADER_BYTES, Compression, build_batch
from barnabas.protocol.records import Record, encode_records


def batch(*offsets: int, compression: Compression = Compression.NONE) -> bytes:
    records = [Record(offset, 1_000, None, b"v%d" % offset) for offset in offsets]
    return encode_records(records, compression=compression)


def control(offset: int) -> bytes:
    return build_batch(
        offset, [(b"\0\0\0\1", b"\0" * 6)], leader_epoch=0, timestamp_ms=0, attributes=CONTROL_FLAG
    )


def spoiled(data: bytes, *, at: int = HEADER_BYTES + 2) -> bytes:
    return data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :]


def summary(read: AcquiredRecords) -> Summary:
    found = [(one.record.offset, one.delivery_count) for one in read.records]
    return found, read.gaps, [one.offsets for one in read.unreadable]


Summary = tuple[list[tuple[int, int]], list[int], list[list[int]]]
"""Offsets with delivery counts, gaps, and unreadable offsets by batch."""

CASES: dict[str, tuple[Sequence[bytes], Sequence[AcquiredRange], Summary]] = {
    "nothing": ([], [], ([], [], [])),
    "all of a batch": ([batch(0, 1, 2)], [(0, 2, 1)], ([(0, 1), (1, 1), (2, 1)], [], [])),
    "one of a batch": ([batch(0, 1, 2)], [(1, 1, 4)], ([(1, 4)], [], [])),
    "two batches": ([batch(0, 1) + batch(2, 3)], [(0, 0, 2), (2, 3, 1)], ([(0, 2), (2, 1), (3, 1)], [], [])),
    "two buffers": ([batch(0, 1), batch(2)], [(1, 2, 1)], ([(1, 1), (2, 1)], [], [])),
    "holes are gaps": ([batch(0, 3, 5)], [(0, 6, 1)], ([(0, 1), (3, 1), (5, 1)], [1, 2, 4, 6], [])),
    "control records are gaps": (
        [batch(0) + control(1) + batch(2)],
        [(0, 2, 1)],
        ([(0, 1), (2, 1)], [1], []),
    ),
    "offsets without any batch": ([], [(4, 5, 1)], ([], [4, 5], [])),
    "a corrupt batch": ([spoiled(batch(0, 1)) + batch(2)], [(0, 2, 1)], ([(2, 1)], [], [[0, 1]])),
    "a corrupt batch of others": ([spoiled(batch(0, 1)) + batch(2)], [(2, 2, 1)], ([(2, 1)], [], [])),
    "a batch cut short": ([batch(0) + batch(1)[:-1]], [(0, 1, 1)], ([(0, 1)], [], [[1]])),
    "no batch at all": ([batch(0) + b"\0" * 70], [(0, 1, 1)], ([(0, 1)], [], [[1]])),
}


@pytest.mark.parametrize(("buffers", "ranges", "expected"), CASES.values(), ids=CASES)
def test_each_acquired_offset_is_accounted_for(
    buffers: Sequence[bytes],
    ranges: Sequence[AcquiredRange],
    expected: Summary,
) -> None:
    assert summary(read_acquired(buffers, ranges)) == expected


@pytest.mark.parametrize("codec", Compression)
def test_batches_are_decompressed(codec: Compression) -> None:
    read = read_acquired([batch(0, 1, compression=codec)], [(0, 1, 1)])
    assert [one.record.value for one in read.records] == [b"v0", b"v1"]


def test_an_unknown_codec_makes_a_batch_unreadable() -> None:
    unknown = build_batch(0, [(None, b"v")], leader_epoch=0, timestamp_ms=0, attributes=7)
    assert summary(read_acquired([unknown + batch(1)], [(0, 1, 1)])) == ([(1, 1)], [], [[0]])


def test_memory_views_are_accepted() -> None:
    read = read_acquired([memoryview(batch(0))], [(0, 0, 1)])
    assert [one.record.value for one in read.records] == [b"v0"]
