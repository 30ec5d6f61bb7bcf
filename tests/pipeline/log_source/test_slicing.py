"""Cutting segments into slices, without unwanted ones."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.pipeline.log_source.errors import CorruptLog
from barnabas.pipeline.log_source.segment_slice import SegmentSlice
from barnabas.pipeline.log_source.slicing import LogBounds, log_end_offset, slice_partition
from barnabas.protocol.record_batch import read_header
from tests.pipeline.log_source.reading import plan_read, read_offsets, rows_of
from tests.pipeline.log_source.written_directory import WrittenDirectory, batch_of

WHOLE = 2**40


@pytest.fixture
def written(tmp_path: Path) -> WrittenDirectory:
    return WrittenDirectory(tmp_path)


def spans(slices: list[SegmentSlice]) -> list[tuple[int, int]]:
    return [(one.start_position, one.end_position) for one in slices]


def test_slices_tile_a_segment_and_begin_at_batches(written: WrittenDirectory) -> None:
    batches = [batch_of(10 * number, 10) for number in range(20)]
    path = written.segment(batches)
    slices = slice_partition(written.folder(), LogBounds(), 3 * len(batches[-1]))
    assert slices[0].start_position == 0
    assert slices[-1].end_position == path.stat().st_size
    for one, following in pairwise(slices):
        assert one.end_position == following.start_position
    data = path.read_bytes()
    assert [read_header(data, one.start_position).base_offset for one in slices] == [
        one.first_offset for one in slices
    ]
    assert len(slices) == 6
    assert max(one.size_bytes for one in slices) < 4 * len(batches[-1])


def test_only_the_newest_segments_last_slice_is_the_logs_end(written: WrittenDirectory) -> None:
    for base_offset in (0, 20):
        written.segment([batch_of(base_offset, 10), batch_of(base_offset + 10, 10)])
    slices = slice_partition(written.folder(), LogBounds(), 1)
    assert [one.is_log_end for one in slices] == [False, False, False, True]


def test_without_an_index_headers_are_walked(written: WrittenDirectory) -> None:
    batch = batch_of(100, 10)
    path = written.segment([batch_of(100 + 10 * number, 10) for number in range(10)])
    path.with_suffix(".index").unlink()
    slices = slice_partition(written.folder(), LogBounds(), 2 * len(batch))
    assert len(slices) == 5
    assert [one.first_offset for one in slices] == [100, 120, 140, 160, 180]


@pytest.mark.parametrize(
    "damage",
    [b"\xff" * 80, b"\x00\x00\x00\x05\x00\x00\x00\x07" * 3, b"\x01"],
    ids=["negative", "of other places", "cut short"],
)
def test_an_index_that_is_damaged_or_not_of_this_file_is_not_followed(
    written: WrittenDirectory, damage: bytes
) -> None:
    path = written.segment([batch_of(10 * number, 10) for number in range(10)])
    path.with_suffix(".index").write_bytes(damage)
    assert read_offsets(written.path, sliceBytes=1000) == list(range(100))


def test_an_index_of_preallocated_size_is_followed(written: WrittenDirectory) -> None:
    path = written.segment([batch_of(10 * number, 10) for number in range(10)])
    with path.with_suffix(".index").open("ab") as file:
        file.write(bytes(800))
    assert len(slice_partition(written.folder(), LogBounds(), 1)) == 10


def test_an_offset_prunes_segments_and_both_ends_of_one(written: WrittenDirectory) -> None:
    batch_bytes = len(batch_of(100, 10))
    for base_offset in (100, 200, 300):
        written.segment([batch_of(base_offset + 10 * number, 10) for number in range(10)])
    slices = slice_partition(written.folder(), LogBounds(235, 255), WHOLE)
    assert [one.segment_base_offset for one in slices] == [200]
    (start, end) = spans(slices)[0]
    assert 2 * batch_bytes <= start <= 3 * batch_bytes
    assert 6 * batch_bytes <= end <= 7 * batch_bytes


def test_a_least_time_prunes_by_the_time_index(written: WrittenDirectory) -> None:
    for base_offset in (0, 100, 200):
        written.segment([batch_of(base_offset + 10 * number, 10) for number in range(10)])
    slices = slice_partition(written.folder(), LogBounds(time_min_ms=155), WHOLE)
    assert [one.segment_base_offset for one in slices] == [100, 200]
    assert 130 <= slices[0].first_offset <= 150


def test_times_that_go_back_are_not_pruned(written: WrittenDirectory) -> None:
    times = [500, 100, 900, 300]
    written.segment([batch_of(10 * number, 10, time_ms=time) for number, time in enumerate(times)])
    written.segment([batch_of(40, 10, time_ms=50)])
    for least, expected in ((950, range(0)), (901, range(21, 30)), (505, range(20, 30))):
        slices = slice_partition(written.folder(), LogBounds(time_min_ms=least), WHOLE)
        read = {offset for one in slices for offset in range(one.first_offset, 50)}
        assert read >= set(expected)


def test_a_segment_that_may_not_be_flushed_is_not_left_out_by_its_time_index(
    written: WrittenDirectory,
) -> None:
    path = written.segment([batch_of(0, 10), batch_of(10, 10, time_ms=5000)])
    written.segment([batch_of(20, 10, time_ms=6000)])
    data = path.with_suffix(".timeindex").read_bytes()
    path.with_suffix(".timeindex").write_bytes(data[:0])
    written.checkpoint("recovery-point-offset-checkpoint", {("t", 0): 10})
    slices = slice_partition(written.folder(), LogBounds(time_min_ms=5000), WHOLE)
    assert [one.segment_base_offset for one in slices] == [0, 20]


def test_a_foreign_file_is_named(written: WrittenDirectory) -> None:
    path = written.segment([batch_of(0, 10)])
    path.write_bytes(b"This is a diary, and nothing of it is a batch of records. " * 10)
    with pytest.raises(CorruptLog, match=f"^{path}: at 0 is no batch"):
        slice_partition(written.folder(), LogBounds(), WHOLE)


def test_an_old_message_format_is_named(written: WrittenDirectory) -> None:
    path = written.segment([batch_of(0, 10)])
    data = bytearray(path.read_bytes())
    data[16] = 1
    path.write_bytes(data)
    with pytest.raises(CorruptLog, match="message format 1, which isn't supported"):
        slice_partition(written.folder(), LogBounds(), WHOLE)


@pytest.mark.parametrize("tail", [b"", b"\x00" * 20, b"\x00" * 500, batch_of(20, 10)[:70]])
def test_the_log_ends_behind_its_last_whole_batch(written: WrittenDirectory, tail: bytes) -> None:
    path = written.segment([batch_of(0, 10), batch_of(10, 10)])
    with path.open("ab") as file:
        file.write(tail)
    assert log_end_offset(written.folder()) == 20


def test_a_log_without_batches_ends_where_its_segment_begins(written: WrittenDirectory) -> None:
    written.segment([], base_offset=70)
    assert log_end_offset(written.folder()) == 70
    assert slice_partition(written.folder(), LogBounds(), WHOLE) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=60)
@given(
    counts=st.lists(st.integers(1, 30), min_size=1, max_size=30),
    segment_batches=st.integers(1, 12),
    gap=st.integers(0, 3),
    index_interval_bytes=st.sampled_from([0, 100, 2000, 10**6]),
    slice_bytes=st.integers(1, 20_000),
    read_bytes=st.integers(1, 5000),
)
def test_any_slice_size_gives_every_record_exactly_once(
    tmp_path_factory: pytest.TempPathFactory,
    counts: list[int],
    segment_batches: int,
    gap: int,
    index_interval_bytes: int,
    slice_bytes: int,
    read_bytes: int,
) -> None:
    written = WrittenDirectory(tmp_path_factory.mktemp("sliced"), index_interval_bytes)
    batches: list[bytes] = []
    expected: list[int] = []
    offset = 0
    for count in counts:
        batches.append(batch_of(offset, count))
        expected += range(offset, offset + count)
        offset += count + gap
    for start in range(0, len(batches), segment_batches):
        written.segment(batches[start : start + segment_batches])
    tasks = plan_read(written.path, sliceBytes=slice_bytes)
    assert [row["offset"] for row in rows_of(tasks, read_bytes=read_bytes)] == expected
    first, last = expected[len(expected) // 4], expected[len(expected) // 2]
    asked = json.dumps({"t": {"0": first}}), json.dumps({"t": {"0": last}})
    part = read_offsets(
        written.path, sliceBytes=slice_bytes, startingOffsets=asked[0], endingOffsets=asked[1]
    )
    assert part == [offset for offset in expected if first <= offset < last]
