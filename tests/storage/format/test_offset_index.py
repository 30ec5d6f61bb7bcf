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
def test_what_is_written_is_read_back_without_the_zeros_at_the_end(zeros: int) -> None:
    index, data = index_of([*ENTRIES, (1030, 512)])
    again = OffsetIndex(1000, data + bytes(zeros))
    assert (again.encode(), len(again)) == (index.encode(), 4)
    assert is_sane(data + bytes(zeros))


@pytest.mark.parametrize(
    ("offset", "position"), [(1000, 0), (1004, 0), (1005, 100), (1009, 100), (1010, 250), (5000, 400)]
)
def test_floor(offset: int, position: int) -> None:
    assert index_of(ENTRIES)[0].floor_position(offset) == position


@pytest.mark.parametrize(("offset", "left"), [(1000, 0), (1005, 0), (1006, 1), (1020, 2), (1021, 3)])
def test_truncation_drops_what_is_at_or_above(offset: int, left: int) -> None:
    index, data = index_of(ENTRIES)
    index.truncate_to(offset)
    assert index.encode() == data[: left * 8]
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
