"""One segment: file names, index entries, bounds, eviction and removal."""

import errno

import pytest

from barnabas.storage.files.open_files import OpenFiles
from barnabas.storage.log_config import LogConfig
from barnabas.storage.segments.segment import RELATIVE_OFFSET_MAX, Segment, remove_segments
from tests.storage.log_building import delta_batch
from tests.storage.memory_filesystem import MemoryFileSystem


@pytest.fixture
def filesystem() -> MemoryFileSystem:
    return MemoryFileSystem()


def made(
    filesystem: MemoryFileSystem, interval_bytes: int = 100, open_files: OpenFiles | None = None
) -> Segment:
    segment = Segment(
        filesystem,
        "",
        1000,
        index_interval_bytes=interval_bytes,
        open_files=open_files or OpenFiles(5),
        damaged_indexes=set(),
        created_ms=50,
    )
    segment.create_files()
    return segment


def test_files_are_named_after_the_base_offset(filesystem: MemoryFileSystem) -> None:
    made(filesystem)
    assert sorted(filesystem.files) == [
        f"/00000000000000001000{suffix}" for suffix in (".index", ".log", ".shareindex", ".timeindex")
    ]


def test_entry_follows_when_more_than_the_interval_was_written(filesystem: MemoryFileSystem) -> None:
    segment = made(filesystem)
    for number in range(6):
        segment.note_data(1000 + number, 60, 500 + number)
    index = segment.offset_index.get()
    assert [index.floor_position(1000 + number) for number in range(6)] == [0, 0, 120, 120, 240, 240]
    assert segment.time_index.get().last_entry() == (504, 1004)
    assert segment.max_timestamp() == (505, 1005)


def test_share_state_counts_for_positions_and_not_for_times(filesystem: MemoryFileSystem) -> None:
    segment = made(filesystem)
    for number in range(4):
        segment.note_control(1000 + number, 60, delta_batch(1000 + number, 0))
    assert len(segment.offset_index.get()) == 1
    assert len(segment.time_index.get()) == 0
    assert segment.holds_share_state_alone()
    assert segment.max_timestamp() == (-1, 1000)
    assert segment.waited_ms(75, -1) == 25
    segment.note_data(1004, 60, 500)
    assert not segment.holds_share_state_alone()
    assert segment.waited_ms(75, 600) == 100


def takes(
    segment: Segment, size_bytes: int, last_offset: int, *, segment_bytes: int, index_bytes: int
) -> bool:
    """Whether the segment takes an append of its own age."""
    config = LogConfig(segment_bytes=segment_bytes, segment_index_bytes=index_bytes)
    return segment.takes(size_bytes, last_offset, 50, 500, config)


@pytest.mark.parametrize(
    ("size_bytes", "last_offset", "fits"),
    [
        (40, 1001, True),
        (41, 1001, False),
        (40, 1000 + RELATIVE_OFFSET_MAX, True),
        (40, 1001 + RELATIVE_OFFSET_MAX, False),
    ],
)
def test_a_segment_takes_no_more_than_its_bounds(
    filesystem: MemoryFileSystem, size_bytes: int, last_offset: int, *, fits: bool
) -> None:
    segment = made(filesystem)
    segment.note_data(1000, 60, 500)
    assert takes(segment, size_bytes, last_offset, segment_bytes=100, index_bytes=1000) == fits


def test_empty_segment_takes_a_batch_of_any_size(filesystem: MemoryFileSystem) -> None:
    assert takes(made(filesystem), 10**9, 1000, segment_bytes=100, index_bytes=0)


def test_full_index_fills_the_segment(filesystem: MemoryFileSystem) -> None:
    segment = made(filesystem, interval_bytes=0)
    for number in range(3):
        segment.note_data(1000 + number, 10, 500)
    assert takes(segment, 10, 1003, segment_bytes=10**6, index_bytes=17)
    assert not takes(segment, 10, 1003, segment_bytes=10**6, index_bytes=16)


def test_evicted_segment_opens_again_when_it_is_used(filesystem: MemoryFileSystem) -> None:
    open_files = OpenFiles(5)
    segment = made(filesystem, open_files=open_files)
    segment.file.write([b"x" * 60])
    segment.note_data(1000, 60, 500)
    segment.evict()
    assert filesystem.open_count == 0
    assert segment.read(0, 60) == b"x" * 60
    segment.close()
    assert (filesystem.open_count, segment.pinned) == (0, False)


def test_bytes_that_the_file_has_lost_are_an_error(filesystem: MemoryFileSystem) -> None:
    segment = made(filesystem)
    segment.file.write([b"x" * 10])
    with pytest.raises(OSError, match="shorter") as failed:
        segment.read(5, 6)
    assert failed.value.errno == errno.EIO


def test_removing_segments_leaves_everything_else(filesystem: MemoryFileSystem) -> None:
    made(filesystem)
    filesystem.files["/partition.metadata"] = bytearray(b"x")
    filesystem.files["/00000000000000001000.snapshot"] = bytearray(b"x")
    remove_segments(filesystem, "")
    assert sorted(filesystem.files) == ["/00000000000000001000.snapshot", "/partition.metadata"]


def test_segments_are_removed_from_the_end(
    filesystem: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        filesystem.files[f"/{name}.log"] = bytearray()
    removed: list[str] = []
    monkeypatch.setattr(filesystem, "remove", removed.append)
    remove_segments(filesystem, "")
    assert removed == ["/c.log", "/b.log", "/a.log"]


def test_indexes_that_are_asked_once_are_not_kept(filesystem: MemoryFileSystem) -> None:
    """A kept index would count as an open file, and these look-ups concern all segments of a log."""
    written = made(filesystem)
    written.note_data(1000, 100, 7)
    written.note_max_timestamp()
    written.time_index.write_pending(written.time_index.pending_bytes)
    segment = made(filesystem)
    segment.time_index.size_bytes = filesystem.file_size(segment.time_index.path)
    segment.timestamps_known = False
    assert (segment.max_timestamp(), segment.holds_share_state_alone()) == ((7, 1000), True)
    reads = filesystem.read_count
    segment.time_index.get()
    assert filesystem.read_count == reads + 1
