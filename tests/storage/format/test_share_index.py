"""The bytes of the `.shareindex` file, and its four uses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage.format.share_index import CLEANED, ShareIndex, ShareIndexEntry, group_hash, is_sane


def entry(
    offset: int, position: int, *, length: int = 100, hashed: int = 7, delta: int = 0, tombstone: bool = False
) -> ShareIndexEntry:
    return ShareIndexEntry(offset, position, length, hashed, delta, 5 if tombstone else 6, tombstone)


ENTRIES = [
    entry(1001, 100),
    entry(1002, 200, hashed=8),
    entry(1003, 300, hashed=0x07000000, delta=2),
    entry(1010, 900, hashed=8, tombstone=True),
    entry(1020, 1000, hashed=7),
]


def index_of(entries: list[ShareIndexEntry]) -> tuple[ShareIndex, bytes]:
    index = ShareIndex(1000)
    return index, b"".join([index.append(one) for one in entries])


def test_an_entry_is_20_bytes() -> None:
    _, data = index_of([ShareIndexEntry(1005, 256, 140, 0xDEADBEEF, 3, 5, True)])
    assert data == bytes.fromhex("00000005 00000100 0000008c deadbeef 0003 05 01")


def test_written_content_is_read_back() -> None:
    _, data = index_of(ENTRIES)
    again = ShareIndex(1000, data)
    assert [again[slot] for slot in range(len(again))] == ENTRIES
    assert is_sane(data)


@pytest.mark.parametrize("extra", [b"\x01", bytes(20), bytes(7)])
def test_impossible_content_is_noticed(extra: bytes) -> None:
    assert not is_sane(index_of(ENTRIES)[1] + extra)


@pytest.mark.parametrize(
    ("start", "end", "spans"),
    [
        (0, 2000, [(100, 200), (200, 300), (300, 400), (900, 1000), (1000, 1100)]),
        (100, 101, [(100, 200)]),
        (101, 900, [(200, 300), (300, 400)]),
        (400, 900, []),
    ],
)
def test_spans_that_begin_between_two_positions_are_found(
    start: int, end: int, spans: list[tuple[int, int]]
) -> None:
    assert list(index_of(ENTRIES)[0].spans(start, end)) == spans


@pytest.mark.parametrize(
    ("position", "behind"), [(0, 0), (100, 400), (200, 400), (400, 400), (900, 1100), (5000, 5000)]
)
def test_the_end_of_the_run_at_a_position_is_found(position: int, behind: int) -> None:
    assert index_of(ENTRIES)[0].end_of_run(position) == behind


def test_a_batch_begins_at_the_position_of_an_entry() -> None:
    index, _ = index_of(ENTRIES)
    found = [position for position in range(0, 2000, 50) if index.has_batch_at(position)]
    assert found == [one.position for one in ENTRIES]


def test_neighbouring_offsets_are_one_run() -> None:
    assert list(index_of(ENTRIES)[0].runs()) == [(1001, 1005), (1010, 1010), (1020, 1020)]
    assert list(ShareIndex(0).runs()) == []


@given(
    st.lists(st.sampled_from([1, 0x100, 0x10000, 0x01010101, 0x0100, 0xFF]), max_size=30), st.integers(0, 300)
)
def test_newest_first_finds_all_entries_of_a_hash(hashes: list[int], other: int) -> None:
    index, _ = index_of([entry(1000 + n, 100 * n, hashed=hashed) for n, hashed in enumerate(hashes)])
    for hashed in {*hashes, other}:
        found = [one.offset - 1000 for one in index.newest_first(hashed)]
        assert found == [n for n in reversed(range(len(hashes))) if hashes[n] == hashed]


@pytest.mark.parametrize(("position", "left"), [(0, 0), (100, 0), (101, 1), (900, 3), (901, 4), (9999, 5)])
def test_truncation_drops_entries_that_begin_at_or_behind(position: int, left: int) -> None:
    index, _ = index_of(ENTRIES)
    index.truncate_to_position(position)
    assert [index[slot] for slot in range(len(index))] == ENTRIES[:left]


def test_checkpoints_of_all_groups_come_newest_first() -> None:
    checkpoints = [
        ShareIndexEntry(1004, 400, 100, 7, 3, 5, False),
        ShareIndexEntry(1008, 500, 100, 8, 0, 5, True),
    ]
    index, _ = index_of([entry(1001, 100), *checkpoints, entry(1009, 600)])
    assert list(index.checkpoints_newest_first()) == checkpoints[::-1]


def test_the_bytes_of_share_state_in_the_segment_are_counted() -> None:
    index, _ = index_of(ENTRIES)
    assert index.length_bytes == 500


def test_group_hash_is_the_crc32c_of_the_id() -> None:
    assert group_hash("123456789") == 0xE3069283


def test_marks_belong_to_no_group_and_are_not_cleanable() -> None:
    mark = ShareIndexEntry(1000, 0, 61, 0, 0, CLEANED, False)
    index, data = index_of([mark, *ENTRIES, entry(1030, 1100, hashed=0)])
    assert is_sane(data)
    assert [found.offset for found in index.newest_first(0)] == [1030]
    assert next(index.runs()) == (1000, 1005)
    assert [index.cleanable_below(offset)[0] for offset in (1000, 1001, 1002, 1006)] == [0, 0, 100, 300]


def test_a_run_of_share_state_costs_a_mark() -> None:
    index, _ = index_of(ENTRIES)
    one_run, two_runs, three_runs = 300 - 61, 400 - 2 * 61, 500 - 3 * 61
    assert [index.cleanable_below(offset)[0] for offset in (1010, 1020, 1021)] == [
        one_run,
        two_runs,
        three_runs,
    ]


def test_a_tombstone_below_the_offset_is_found() -> None:
    index, _ = index_of(ENTRIES)
    assert [index.cleanable_below(offset)[1] for offset in (1000, 1010, 1011)] == [False, False, True]


def test_marks_alone_cannot_be_cleaned() -> None:
    marks = [ShareIndexEntry(1000 + offset, 61 * offset, 61, 0, 0, CLEANED, False) for offset in range(3)]
    assert index_of(marks)[0].cleanable_below(5000) == (0, False)
    assert index_of([*marks, entry(1003, 300)])[0].cleanable_below(5000) == (100, False)


@pytest.mark.parametrize(
    ("offset", "following", "preceding"),
    [
        (1000, 1000, 1000),
        (1001, 1006, 1000),
        (1002, 1006, 1000),
        (1004, 1006, 1000),
        (1006, 1006, 1006),
        (1010, 1011, 1009),
        (1020, 1021, 1019),
        (1021, 1021, 1021),
    ],
)
def test_the_data_around_control_batches_is_found(offset: int, following: int, preceding: int) -> None:
    index, _ = index_of(ENTRIES)
    assert (index.next_data_offset(offset), index.previous_data_offset(offset)) == (following, preceding)


def test_entries_are_found_by_position() -> None:
    index, _ = index_of(ENTRIES)
    assert index.entries_between(200, 900) == ENTRIES[1:3]
    assert index.entries_between(901, 1000) == []


@pytest.mark.parametrize(
    "entries",
    [
        [entry(1002, 100), entry(1001, 200)],
        [entry(1001, 200), entry(1002, 100)],
        [entry(1001, 100, length=101), entry(1002, 200)],
        [entry(1001, 100, delta=1), entry(1002, 200)],
    ],
)
def test_entries_that_overlap_are_noticed(entries: list[ShareIndexEntry]) -> None:
    index, data = index_of(entries)
    assert not index.is_ascending()
    assert not is_sane(data)
    assert index_of(ENTRIES)[0].is_ascending()
