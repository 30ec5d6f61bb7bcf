"""The list of a log's segments: look-ups by offset, rolls, removals and replacements."""

import pytest

from barnabas.storage.files.open_files import OpenFiles
from barnabas.storage.segments.segment import Segment
from barnabas.storage.segments.segments import Segments
from tests.storage.memory_filesystem import MemoryFileSystem


def segment(base_offset: int) -> Segment:
    return Segment(
        MemoryFileSystem(),
        "",
        base_offset,
        index_interval_bytes=0,
        open_files=OpenFiles(1),
        damaged_indexes=set(),
        created_ms=0,
    )


def segments_of(*base_offsets: int) -> Segments:
    return Segments([segment(base_offset) for base_offset in base_offsets])


@pytest.mark.parametrize(("offset", "base_offset"), [(0, 10), (10, 10), (19, 10), (20, 20), (99, 30)])
def test_the_floor_is_the_segment_that_holds_an_offset(offset: int, base_offset: int) -> None:
    assert segments_of(10, 20, 30).floor(offset).base_offset == base_offset


@pytest.mark.parametrize(("offset", "count"), [(0, 3), (19, 3), (20, 2), (99, 1)])
def test_segments_from_an_offset_begin_with_the_one_that_holds_it(offset: int, count: int) -> None:
    assert len(segments_of(10, 20, 30).from_offset(offset)) == count


def test_every_segment_but_the_active_one_has_a_next_one() -> None:
    segments = segments_of(10, 20)
    assert segments.after(segments.first) is segments.active
    assert segments.after(segments.active) is None


def test_a_roll_makes_room_to_drop_all_earlier_segments() -> None:
    segments = segments_of(10, 20)
    segments.roll(segment(25))
    assert [one.base_offset for one in segments.drop_first(2)] == [10, 20]
    assert [one.base_offset for one in segments] == [25]
    assert segments.floor(0) is segments.first is segments.active
    with pytest.raises(AssertionError):
        segments.drop_first(1)
    with pytest.raises(AssertionError):
        segments.roll(segment(25))


def test_adjoining_segments_give_way_to_one() -> None:
    segments = segments_of(10, 20, 30, 40)
    old, new = list(segments)[1:3], segment(20)
    segments.replace(old, new)
    assert [one.base_offset for one in segments] == [10, 20, 40]
    assert segments.floor(35) is new
    with pytest.raises(AssertionError):
        segments.replace([segments.active], segment(40))
    with pytest.raises(AssertionError):
        segments.replace([new], segment(25))
