"""The bytes of the `.index` file, and look-ups in it."""

import pytest

from barnabas.storage.format.offset_index import OffsetIndex, is_sane

ENTRIES = [(1005, 100), (1010, 250), (1020, 400)]


def index_of(entries: list[tuple[int, int]]) -> tuple[OffsetIndex, bytes]:
    index = OffsetIndex(1000)
    return index, b"".join([index.append(*entry) for entry in entries])


def test_entries_are_kafkas() -> None:
    _, data = index_of([(1005, 100)])
    assert data == bytes.fromhex("00000005 00000064")


@pytest.mark.parametrize("zeros", [0, 8, 8000])
def test_written_content_is_read_back_without_the_zeros_at_the_end(zeros: int) -> None:
    index, data = index_of([*ENTRIES, (1030, 512)])
    again = OffsetIndex(1000, data + bytes(zeros))
    assert list(again.entries()) == list(index.entries()) == [*ENTRIES, (1030, 512)]
    assert is_sane(data + bytes(zeros))


@pytest.mark.parametrize(
    ("offset", "position"), [(1000, 0), (1004, 0), (1005, 100), (1009, 100), (1010, 250), (5000, 400)]
)
def test_the_floor_is_the_last_entry_at_or_before_an_offset(offset: int, position: int) -> None:
    assert index_of(ENTRIES)[0].floor_position(offset) == position


@pytest.mark.parametrize(("offset", "left"), [(1000, 0), (1005, 0), (1006, 1), (1020, 2), (1021, 3)])
def test_truncation_drops_entries_at_or_above(offset: int, left: int) -> None:
    index, _ = index_of(ENTRIES)
    index.truncate_to(offset)
    assert list(index.entries()) == ENTRIES[:left]
    assert index.last_entry() == (ENTRIES[left - 1] if left else (999, 0))


@pytest.mark.parametrize(
    "data", [b"\x00" * 7, b"\x01" * 9, bytes.fromhex("0000000500000064 0000000400000064")]
)
def test_impossible_content_is_noticed(data: bytes) -> None:
    assert not is_sane(data)


def test_offsets_ascend() -> None:
    index, _ = index_of(ENTRIES)
    with pytest.raises(AssertionError):
        index.append(1020, 500)


def test_entries_are_listed_and_found_by_offset_and_position() -> None:
    index, _ = index_of(ENTRIES)
    assert list(index.entries()) == ENTRIES
    assert list(index.entries_down(1019)) == [(1010, 250), (1005, 100)]
    assert list(index.entries_down(1004)) == []
    assert list(index.entries_between(100, 400)) == ENTRIES[:2]
    assert list(index.positions_behind(100)) == [250, 400]


@pytest.mark.parametrize(
    ("data", "offset", "found"),
    [
        ("0000000a00000064 0000000500000096", 1007, [(1005, 150)]),
        ("8000000a00000064 0000000500000096", 1005, [(1005, 150), (1000 - 2**31 + 10, 100)]),
    ],
)
def test_entries_out_of_order_are_noticed_and_left_out(
    data: str, offset: int, found: list[tuple[int, int]]
) -> None:
    index = OffsetIndex(1000, bytes.fromhex(data))
    assert index.is_ascending() == (data[0] == "8")
    assert list(index.entries_down(offset)) == found
