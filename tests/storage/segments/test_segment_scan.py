"""Scans of a segment: good batches, and the first bad one."""

import pytest

from barnabas.storage.segments.segment_scan import scan_segment
from tests.storage.log_building import produced
from tests.storage.memory_filesystem import MemoryFileSystem

ANY_OFFSET = range(2**31)
UNCHECKED = 2**63


def scanned(
    content: bytes, position: int = 0, *, offsets: range = ANY_OFFSET, checked_from: int = 0
) -> list[int]:
    """The positions behind the good batches."""
    filesystem = MemoryFileSystem()
    filesystem.files["log"] = bytearray(content)
    file = filesystem.open("log", create=False)
    scan = scan_segment(file, position, len(content), offsets=offsets, checked_from=checked_from)
    ends: list[int] = []
    for batch in scan:
        assert bytes(batch.data) == content[batch.position : batch.position + len(batch.data)]
        ends.append(batch.position + len(batch.data))
    return ends


def batch_at(offset: int, count: int = 1, value: bytes = b"value") -> bytes:
    return offset.to_bytes(8, "big") + produced(count, value=value)[8:]


FIRST, SECOND = batch_at(0, 3), batch_at(3)
BOTH = FIRST + SECOND


def test_whole_batches_are_found() -> None:
    assert scanned(BOTH) == [len(FIRST), len(BOTH)]
    assert scanned(BOTH, len(FIRST)) == [len(BOTH)]
    assert scanned(b"") == []


@pytest.mark.parametrize("cut", [1, 11, 60, 61, len(SECOND) - 1])
def test_batch_that_is_cut_short_ends_the_scan(cut: int) -> None:
    assert scanned(FIRST + SECOND[:cut]) == [len(FIRST)]


@pytest.mark.parametrize("position", range(8, len(SECOND)))
def test_changed_byte_ends_the_scan_unless_the_leader_assigned_it(position: int) -> None:
    changed = bytearray(BOTH)
    changed[len(FIRST) + position] ^= 0x40
    is_leader_epoch = 12 <= position < 16
    assert scanned(bytes(changed)) == ([len(FIRST), len(BOTH)] if is_leader_epoch else [len(FIRST)])


def test_checksum_is_not_computed_below_its_offset() -> None:
    changed = bytearray(BOTH)
    changed[len(FIRST) - 1] ^= 1
    assert scanned(bytes(changed), checked_from=3) == [len(FIRST), len(BOTH)]
    assert scanned(bytes(changed), checked_from=0) == []


@pytest.mark.parametrize("offsets", [range(1, 100), range(3)])
def test_offset_outside_the_allowed_range_ends_the_scan(offsets: range) -> None:
    assert len(scanned(BOTH, offsets=offsets)) <= 1


def test_offsets_ascend() -> None:
    assert scanned(FIRST + batch_at(2)) == [len(FIRST)]
    assert scanned(FIRST + batch_at(30)) == [len(FIRST), len(BOTH)]


@pytest.mark.parametrize(
    "garbage", [bytes(200), b"\xff" * 200, b"\x00" * 8 + b"\x7f\xff\xff\xff" + bytes(80)]
)
def test_garbage_ends_the_scan(garbage: bytes) -> None:
    assert scanned(BOTH + garbage) == [len(FIRST), len(BOTH)]


def test_batches_larger_than_a_chunk_are_read_whole() -> None:
    large = batch_at(0, value=b"x" * (3 * 1024 * 1024))
    small = b"".join(batch_at(offset) for offset in range(1, 20_000))
    ends = scanned(large + small + batch_at(20_000, value=b"y" * (1024 * 1024)), checked_from=UNCHECKED)
    assert len(ends) == 20_001
