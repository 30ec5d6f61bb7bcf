"""The bytes of the `.timeindex` file, and look-ups in it."""

import pytest

from barnabas.storage.format.time_index import TimeIndex, is_sane

ENTRIES = [(5000, 1003), (6000, 1010), (7000, 1011)]


def index_of(entries: list[tuple[int, int]]) -> tuple[TimeIndex, bytes]:
    index = TimeIndex(1000)
    return index, b"".join([index.append(*entry) for entry in entries])


def test_entries_are_kafkas() -> None:
    _, data = index_of([(5000, 1003)])
    assert data == bytes.fromhex("0000000000001388 00000003")


@pytest.mark.parametrize("zeros", [0, 12, 12000])
def test_written_content_is_read_back_without_the_zeros_at_the_end(zeros: int) -> None:
    index, data = index_of([*ENTRIES, (8000, 1000 + 256)])
    again = TimeIndex(1000, data + bytes(zeros))
    assert list(again.entries()) == list(index.entries()) == [*ENTRIES, (8000, 1000 + 256)]
    assert is_sane(data + bytes(zeros))


def test_the_time_0_at_the_base_offset_is_an_entry_though_all_zeros() -> None:
    index, data = index_of([(0, 1000)])
    assert data == bytes(12)
    assert list(TimeIndex(1000, data).entries()) == list(index.entries()) == [(0, 1000)]
    later = index.append(5, 1003)
    assert list(TimeIndex(1000, data + later + bytes(24)).entries()) == [(0, 1000), (5, 1003)]


def test_a_file_of_zeros_that_was_made_larger_beforehand_has_no_entry() -> None:
    assert list(TimeIndex(1000, bytes(12_000)).entries()) == []


@pytest.mark.parametrize("entry", [(7000, 1012), (6500, 1012), (-1, 1012)])
def test_timestamp_that_is_not_larger_adds_nothing(entry: tuple[int, int]) -> None:
    index, _ = index_of(ENTRIES)
    assert index.append(*entry) == b""
    assert list(index.entries()) == ENTRIES


@pytest.mark.parametrize(
    ("timestamp_ms", "offset"), [(0, 1000), (5000, 1000), (5001, 1003), (7000, 1010), (7001, 1011)]
)
def test_every_record_up_to_the_floor_is_earlier(timestamp_ms: int, offset: int) -> None:
    assert index_of(ENTRIES)[0].floor_offset(timestamp_ms) == offset


@pytest.mark.parametrize(("offset", "left"), [(1003, 0), (1004, 1), (1010, 1), (1011, 2), (1012, 3)])
def test_truncation_drops_entries_at_or_above(offset: int, left: int) -> None:
    index, _ = index_of(ENTRIES)
    index.truncate_to(offset)
    assert list(index.entries()) == ENTRIES[:left]
    assert index.last_entry() == (ENTRIES[left - 1] if left else (-1, 1000))


@pytest.mark.parametrize(
    "data", [b"\x01" * 11, bytes.fromhex("000000000000138800000003 000000000000138700000004")]
)
def test_impossible_content_is_noticed(data: bytes) -> None:
    assert not is_sane(data)


def test_entries_are_listed() -> None:
    assert list(index_of(ENTRIES)[0].entries()) == ENTRIES
