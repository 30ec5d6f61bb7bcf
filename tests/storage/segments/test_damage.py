"""Reads past bad batches: batches behind them are found, records that look like batches are not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from barnabas.protocol.record_batch import LOG_OVERHEAD, build_batch
from barnabas.storage.segments.damage import (
    Damage,
    end_of_whole_batches,
    may_hide_batch,
    scan_past_damage,
)
from barnabas.storage.segments.segment_scan import CHUNK_BYTES, ScannedBatch


class Bytes:
    """A file of these bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.bytes_read = 0

    def read(self, position: int, size: int) -> bytes:
        self.bytes_read += size
        return self.data[position : position + size]


def batch(offset: int, value: bytes = b"value") -> bytes:
    return build_batch(offset, [(None, value)], leader_epoch=0, timestamp_ms=1000)


BATCHES = [batch(offset) for offset in range(4)]
SIZE = len(BATCHES[0])


def scanned(data: bytes, boundaries: Sequence[int] = ()) -> list[int | tuple[int, int]]:
    """The offsets of good batches and the (position, end) of damage, in the order of the file."""

    def behind(position: int) -> Iterable[int]:
        return [one for one in boundaries if one > position]

    found: list[int | tuple[int, int]] = []
    for one in scan_past_damage(Bytes(data), 0, len(data), offsets=range(100), boundaries=behind):
        if isinstance(one, ScannedBatch):
            found.append(one.header.base_offset)
        else:
            found.append((one.position, one.end))
    return found


def spoilt(number: int, position: int, replacement: bytes) -> bytes:
    """The four batches with these bytes at a position of one of them."""
    data = bytearray(b"".join(BATCHES))
    start = number * SIZE + position
    data[start : start + len(replacement)] = replacement
    return bytes(data)


def test_a_whole_file_has_no_damage() -> None:
    assert scanned(b"".join(BATCHES)) == [0, 1, 2, 3]


@pytest.mark.parametrize("number", range(4))
def test_a_batch_with_a_wrong_checksum_ends_where_it_says(number: int) -> None:
    expected: list[int | tuple[int, int]] = [0, 1, 2, 3]
    expected[number] = (number * SIZE, (number + 1) * SIZE)
    assert scanned(spoilt(number, SIZE - 1, b"\xff")) == expected


@pytest.mark.parametrize(
    "length", [b"\x00\x00\x00\x00", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00"]
)
def test_the_index_leads_past_a_batch_of_unknown_size(length: bytes) -> None:
    data = spoilt(1, 8, length)
    assert scanned(data, [3 * SIZE]) == [0, (SIZE, 3 * SIZE), 3]
    assert scanned(data) == [0, (SIZE, 4 * SIZE)]


def test_a_wrong_size_that_leads_to_a_later_batch_hides_none_that_the_index_knows() -> None:
    data = spoilt(1, 8, (2 * SIZE - LOG_OVERHEAD).to_bytes(4, "big"))
    assert scanned(data, [2 * SIZE, 3 * SIZE]) == [0, (SIZE, 2 * SIZE), 2, 3]
    assert scanned(data) == [0, (SIZE, 3 * SIZE), 3]


def test_bytes_that_are_not_a_batch_are_not_read_by_their_stated_size() -> None:
    no_batch = bytearray(BATCHES[1])
    no_batch[8:12], no_batch[16:17] = (1 << 20).to_bytes(4, "big"), b"\x07"
    data = bytes(no_batch) * 100 + bytes(2 << 20) + BATCHES[3]
    file = Bytes(data)
    (damage, found) = scan_past_damage(
        file,
        0,
        len(data),
        offsets=range(100),
        boundaries=lambda _: [*range(SIZE, 100 * SIZE, SIZE), len(data) - SIZE],
        chunk_bytes=SIZE,
    )
    assert isinstance(damage, Damage)
    assert damage.end == len(data) - SIZE
    assert isinstance(found, ScannedBatch)
    assert file.bytes_read < 400 * SIZE


def test_index_positions_without_a_batch_are_skipped() -> None:
    assert scanned(spoilt(1, 8, b"\xff"), [SIZE + 5, 2 * SIZE + 1, 9 * SIZE, 3 * SIZE]) == [
        0,
        (SIZE, 3 * SIZE),
        3,
    ]


def test_zeros_are_not_a_batch() -> None:
    assert scanned(spoilt(1, 0, bytes(2 * SIZE)), [3 * SIZE]) == [0, (SIZE, 3 * SIZE), 3]


def test_a_part_of_the_last_batch_is_damage() -> None:
    assert scanned(b"".join(BATCHES)[:-1]) == [0, 1, 2, (3 * SIZE, 4 * SIZE - 1)]
    assert scanned(b"".join(BATCHES)[: 3 * SIZE + 7]) == [0, 1, 2, (3 * SIZE, 3 * SIZE + 7)]


def test_a_record_that_looks_like_a_batch_is_not_found() -> None:
    outer = bytearray(batch(1, batch(2)))
    outer[8:12] = b"\x7f\xff\xff\xff"
    assert scanned(BATCHES[0] + outer) == [0, (SIZE, SIZE + len(outer))]


@pytest.mark.parametrize(("number", "bit"), [(1, 0x02), (1, 0x40), (2, 0x01), (2, 0x08), (3, 0x01)])
def test_a_wrong_base_offset_shows_by_the_batches_around_it(number: int, bit: int) -> None:
    """The checksum does not cover the base offset."""
    data = spoilt(number, 7, bytes([number ^ bit]))
    expected: list[int | tuple[int, int]] = [0, 1, 2, 3]
    expected[number] = (number * SIZE, (number + 1) * SIZE)
    if number == 3 and number ^ bit > 3:
        expected[number] = number ^ bit  # no later batch contradicts it
    assert scanned(data) == expected


@pytest.mark.parametrize(
    ("position", "replacement", "reason"),
    [
        (0, bytes(SIZE), "it begins with zeros"),
        (16, b"\x01", "its magic is 1, not 2"),
        (8, b"\x7f", "its header has a size of 2130706505 bytes, and 73 are left"),
        (SIZE - 1, b"\xff", "its checksum does not match its bytes"),
        (7, b"\x01", "its offsets 1 to 1 do not follow 2"),
        (7, b"\x64", "its offsets 100 to 100 reach beyond 99"),
    ],
)
def test_damage_has_a_reason(position: int, replacement: bytes, reason: str) -> None:
    data = spoilt(3, position, replacement)
    *_, damage = scan_past_damage(Bytes(data), 0, len(data), offsets=range(100), boundaries=lambda _: ())
    assert isinstance(damage, Damage)
    assert damage.reason == reason


def test_adjacent_damaged_batches_end_where_the_last_one_says() -> None:
    data = bytearray(spoilt(1, SIZE - 1, b"\xff"))
    data[3 * SIZE - 1] = 0xFF
    assert scanned(bytes(data)) == [0, (SIZE, 3 * SIZE), 3]


def test_the_size_of_a_damaged_batch_that_the_index_knows_leads_on() -> None:
    data = bytearray(spoilt(1, 8, b"\x7f"))
    data[3 * SIZE - 1] = 0xFF
    assert scanned(bytes(data), [2 * SIZE]) == [0, (SIZE, 3 * SIZE), 3]
    assert scanned(bytes(data)) == [0, (SIZE, 4 * SIZE)]


@pytest.mark.parametrize(
    ("size_bytes", "end"),
    [(3 * SIZE, 3 * SIZE), (3 * SIZE - 1, 2 * SIZE), (2 * SIZE + 60, 2 * SIZE), (2 * SIZE - 1, SIZE)],
)
def test_complete_batches_end_before_the_first_one_that_is_cut_short(size_bytes: int, end: int) -> None:
    data = b"".join(BATCHES)[:size_bytes]
    assert end_of_whole_batches(Bytes(data), Damage(SIZE, size_bytes, "damaged")) == end


@pytest.mark.parametrize("before_bytes", [0, 1, 70, CHUNK_BYTES - 30, CHUNK_BYTES + 1])
def test_a_batch_may_hide_anywhere(before_bytes: int) -> None:
    data = bytes([2]) * before_bytes + BATCHES[3] + bytes(100)
    assert may_hide_batch(Bytes(data), 0, len(data), range(3, 4))
    assert not may_hide_batch(Bytes(data), 0, len(data), range(4, 9))
    assert not may_hide_batch(Bytes(data), 0, before_bytes + SIZE - 1, range(3, 4))
    assert not may_hide_batch(Bytes(data), before_bytes + 1, len(data), range(3, 4))
