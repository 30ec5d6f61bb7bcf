"""Walking the headers of a segment."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.pipeline.log_source.errors import CorruptLog, SegmentChanged
from barnabas.pipeline.log_source.segment_file import LONG_BATCH_BYTES, OpenSegment, SegmentFile
from tests.pipeline.log_source.written_directory import batch_of

SIZES = [1, 10, LONG_BATCH_BYTES, 5, LONG_BATCH_BYTES, LONG_BATCH_BYTES, 70_000, 3]
BATCHES = [batch_of(number, 1, value_bytes=size) for number, size in enumerate(SIZES)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(b"".join(BATCHES))
    return path


def test_every_whole_batch_is_walked_over(path: Path) -> None:
    with OpenSegment(str(path)) as file:
        walked = list(file.headers(0, file.size_bytes()))
    assert [header.base_offset for _, header in walked] == list(range(len(BATCHES)))
    assert [position for position, _ in walked] == [
        sum(map(len, BATCHES[:number])) for number in range(len(BATCHES))
    ]


@pytest.mark.parametrize("cut", [1, 50, 70])
def test_a_walk_ends_in_front_of_a_batch_that_is_cut_short(path: Path, cut: int) -> None:
    with OpenSegment(str(path)) as file:
        walked = list(file.headers(0, file.size_bytes() - cut))
    assert len(walked) == len(BATCHES) - 1


def test_a_walk_ends_in_front_of_zeros(path: Path) -> None:
    path.write_bytes(path.read_bytes() + bytes(100))
    with OpenSegment(str(path)) as file:
        assert len(list(file.headers(0, file.size_bytes()))) == len(BATCHES)


def test_a_malformed_header_is_named_by_its_position(path: Path) -> None:
    path.write_bytes(BATCHES[0] + b"no batch " * 20)
    with (
        OpenSegment(str(path)) as file,
        pytest.raises(CorruptLog, match=f"at {len(BATCHES[0])} is no batch: its magic is"),
    ):
        list(file.headers(0, file.size_bytes()))


def test_a_file_that_has_shrunk_is_named(path: Path) -> None:
    with OpenSegment(str(path)) as file:
        size_bytes = file.size_bytes()
        path.write_bytes(BATCHES[0])
        with pytest.raises(SegmentChanged, match=f"^{path}: it has shrunk to less than {size_bytes} bytes"):
            list(file.headers(0, size_bytes))


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(SegmentChanged, match="it was removed after the query was planned"):
        OpenSegment(str(tmp_path / "gone.log"))


def test_the_files_beside_a_segment_are_read(path: Path) -> None:
    path.with_suffix(".index").write_bytes(b"entries")
    segment = SegmentFile(str(path), 0, path.stat().st_size)
    assert segment.read_beside(".index") == b"entries"
    assert segment.read_beside(".timeindex") == b""
