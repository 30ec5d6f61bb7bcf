"""Reading one slice: its records, the end of a log, damage and its errors."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.pipeline.log_source.errors import CorruptLog, SegmentChanged
from barnabas.protocol.record_batch import CONTROL_FLAG, Compression, build_batch
from tests.pipeline.log_source.reading import plan_read, read_offsets, read_rows, rows_of
from tests.pipeline.log_source.written_directory import WrittenDirectory, batch_of


@pytest.fixture
def written(tmp_path: Path) -> WrittenDirectory:
    return WrittenDirectory(tmp_path)


def ten_batches(base_offset: int = 0) -> list[bytes]:
    return [batch_of(base_offset + 10 * number, 10, value_bytes=50) for number in range(10)]


def test_a_record_has_its_columns(written: WrittenDirectory) -> None:
    written.segment([batch_of(7, 1, time_ms=1234)], topic="orders", partition=3)
    (row,) = read_rows(written.path)
    assert (row["topic"], row["partition"], row["offset"], row["timestampType"]) == ("orders", 3, 7, 0)
    assert (row["key"], row["value"]) == (b"key-7", b"value-7")
    assert row["timestamp"].timestamp() == 1.234
    assert row["headers"] == [{"key": "name", "value": b"header"}]


@pytest.mark.parametrize("codec", list(Compression))
def test_every_codec_is_read(written: WrittenDirectory, codec: Compression) -> None:
    written.segment([batch_of(0, 100, compression=codec), batch_of(100, 100, compression=codec)])
    rows = read_rows(written.path)
    assert [row["value"] for row in rows] == [b"value-%d" % number for number in range(200)]


def test_control_batches_and_holes_are_stepped_over(written: WrittenDirectory) -> None:
    control = build_batch(
        10, [(b"\x00\x00\x00\x06", b"state")], leader_epoch=0, timestamp_ms=0, attributes=CONTROL_FLAG
    )
    written.segment([batch_of(0, 10), control, batch_of(50, 10)])
    assert read_offsets(written.path) == [*range(10), *range(50, 60)]


def test_records_below_the_log_start_are_not_read(written: WrittenDirectory) -> None:
    written.segment(ten_batches())
    written.checkpoint("log-start-offset-checkpoint", {("t", 0): 25})
    assert read_offsets(written.path) == list(range(25, 100))


def test_a_batch_larger_than_the_window_is_read(written: WrittenDirectory) -> None:
    written.segment([batch_of(0, 1), batch_of(1, 3, value_bytes=5000), batch_of(4, 1)])
    assert read_offsets(written.path) == list(range(5))


@pytest.mark.parametrize("cut", [1, 8, 11, 12, 16, 17, 40, 61, 62, 200])
def test_a_batch_cut_short_at_the_end_of_the_newest_segment_ends_the_log(
    written: WrittenDirectory, cut: int
) -> None:
    written.segment(ten_batches())
    path = written.segment(ten_batches(100))
    with path.open("ab") as file:
        file.write(batch_of(200, 10)[:cut])
    assert read_offsets(written.path) == list(range(200))


@pytest.mark.parametrize("zeros", [1, 16, 61, 5000])
def test_zeros_at_the_end_of_the_newest_segment_end_the_log(written: WrittenDirectory, zeros: int) -> None:
    path = written.segment(ten_batches())
    with path.open("ab") as file:
        file.write(bytes(zeros))
    assert read_offsets(written.path) == list(range(100))


@pytest.mark.parametrize("cut", [1, 5, 100])
def test_an_older_segment_that_is_cut_short_is_named(written: WrittenDirectory, cut: int) -> None:
    path = written.segment(ten_batches())
    written.segment(ten_batches(100))
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(CorruptLog, match=rf"^{path}: the batch at byte \d+ is cut short"):
        read_offsets(written.path)


def test_zeros_in_an_older_segment_are_damage(written: WrittenDirectory) -> None:
    path = written.segment(ten_batches())
    written.segment(ten_batches(100))
    with path.open("ab") as file:
        file.write(bytes(100))
    with pytest.raises(CorruptLog, match=str(path)):
        read_offsets(written.path)


def test_a_flipped_bit_is_named_with_file_offset_and_place(written: WrittenDirectory) -> None:
    batches = ten_batches()
    path = written.segment(batches)
    flip(path, sum(map(len, batches[:4])) + 100)
    place = sum(map(len, batches[:4]))
    with pytest.raises(
        CorruptLog, match=rf"^{path}: the batch of offset 40 at byte {place} has the checksum"
    ):
        read_offsets(written.path)


def test_a_length_that_reaches_behind_the_log_is_not_taken_for_its_end(written: WrittenDirectory) -> None:
    batches = ten_batches()
    path = written.segment(batches)
    flip(path, sum(map(len, batches[:4])) + 9, mask=0x40)
    with pytest.raises(CorruptLog, match=r"is cut short: it states \d+ bytes"):
        read_offsets(written.path)
    assert read_offsets(written.path, onCorrupt="skip") == [*range(40), *range(50, 100)]


@pytest.mark.parametrize("slice_bytes", [1, 2000, 10**9])
@pytest.mark.parametrize("place", [9, 16, 17, 100])
def test_skipping_leaves_out_the_damaged_batch_alone(
    written: WrittenDirectory, caplog: pytest.LogCaptureFixture, place: int, slice_bytes: int
) -> None:
    batches = ten_batches()
    path = written.segment(batches)
    damaged_at = sum(map(len, batches[:4]))
    flip(path, damaged_at + place)
    with caplog.at_level(logging.WARNING):
        offsets = read_offsets(written.path, onCorrupt="skip", sliceBytes=slice_bytes)
    assert offsets == [*range(40), *range(50, 100)]
    (record,) = caplog.records
    end = damaged_at + len(batches[4])
    assert record.getMessage().startswith(f"{path}: the batch ")
    assert record.getMessage().endswith(f"the bytes from {damaged_at} to {end} are skipped")


@pytest.mark.parametrize("place", [9, 10, 17, 100])
def test_without_an_index_the_next_batch_is_searched_for(written: WrittenDirectory, place: int) -> None:
    batches = ten_batches()
    path = written.segment(batches)
    path.with_suffix(".index").unlink()
    flip(path, sum(map(len, batches[:4])) + place)
    with pytest.raises(CorruptLog, match=str(path)):
        read_offsets(written.path)
    assert read_offsets(written.path, onCorrupt="skip") == [*range(40), *range(50, 100)]


def test_without_a_next_batch_the_rest_of_the_slice_is_skipped(
    written: WrittenDirectory,
) -> None:
    batches = ten_batches()
    path = written.segment(batches)
    path.with_suffix(".index").unlink()
    flip(path, sum(map(len, batches[:4])) + 16)
    assert read_offsets(written.path, onCorrupt="skip") == list(range(40))


def test_skipped_parts_have_a_row_if_the_column_is_wanted(written: WrittenDirectory) -> None:
    batches = ten_batches()
    path = written.segment(batches)
    flip(path, sum(map(len, batches[:4])) + 100)
    rows = read_rows(written.path, onCorrupt="skip", columns="damage,value,offset,topic")
    damaged = [row for row in rows if row["damage"] is not None]
    assert len(rows) == 91
    assert [(row["offset"], row["topic"], row["value"]) for row in damaged] == [(40, "t", None)]
    assert str(path) in damaged[0]["damage"]
    assert list(rows[0]) == ["damage", "value", "offset", "topic"]


def test_a_foreign_file_is_skipped_whole(written: WrittenDirectory) -> None:
    path = written.segment(ten_batches())
    written.segment(ten_batches(100))
    path.write_bytes(b"This is a diary. " * 100)
    assert read_offsets(written.path, onCorrupt="skip") == list(range(100, 200))


def test_a_batch_written_after_the_plan_is_not_read(written: WrittenDirectory) -> None:
    path = written.segment(ten_batches())
    tasks = plan_read(written.path, columns="offset")
    with path.open("ab") as file:
        file.write(batch_of(100, 10))
    assert len(rows_of(tasks)) == 100


def test_a_segment_removed_after_the_plan_is_named(written: WrittenDirectory) -> None:
    path = written.segment(ten_batches())
    tasks = plan_read(written.path)
    path.unlink()
    with pytest.raises(SegmentChanged, match=f"^{path}: it was removed after the query was planned"):
        rows_of(tasks)


def test_a_segment_cut_after_the_plan_is_named(written: WrittenDirectory) -> None:
    path = written.segment(ten_batches())
    tasks = plan_read(written.path)
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(SegmentChanged, match=f"^{path}: it has shrunk"):
        rows_of(tasks)


def test_a_segment_compacted_after_the_plan_is_named(written: WrittenDirectory) -> None:
    path = written.segment(ten_batches())
    written.segment(ten_batches(100))
    tasks = plan_read(written.path, sliceBytes=1500)
    path.write_bytes(b"".join(batch_of(7 * number, 7, value_bytes=90) for number in range(14)))
    with pytest.raises(SegmentChanged, match=f"^{path}: it was rewritten"):
        rows_of(tasks)


def test_a_time_range_is_exact(written: WrittenDirectory) -> None:
    written.segment(
        [batch_of(0, 10, time_ms=100), batch_of(10, 10, time_ms=50), batch_of(20, 10, time_ms=105)]
    )
    (task,) = plan_read(written.path, columns="offset")
    ranged = type(task)(
        piece=task.piece, columns=task.columns, offset_range=task.offset_range, time_range_ms=(105, 106)
    )
    assert [row["offset"] for row in rows_of([ranged])] == [5, 6, 20, 21]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=150)
@given(data=st.data())
def test_a_flipped_bit_is_an_error_or_changes_only_offsets(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    written = WrittenDirectory(tmp_path_factory.mktemp("flipped"))
    path = written.segment([batch_of(10 * number, 10) for number in range(4)])
    written.segment([batch_of(40, 10)])
    whole = read_rows(written.path)
    flip(path, data.draw(st.integers(0, path.stat().st_size - 1)), mask=1 << data.draw(st.integers(0, 7)))
    try:
        rows = read_rows(written.path)
    except (CorruptLog, SegmentChanged):
        return
    without_offsets = [{**row, "offset": None} for row in rows]
    assert without_offsets == [{**row, "offset": None} for row in whole]


def flip(path: Path, place: int, mask: int = 0x10) -> None:
    """Changes bits of one byte."""
    data = bytearray(path.read_bytes())
    data[place] ^= mask
    path.write_bytes(data)


def test_an_offset_range_cuts_within_a_batch(written: WrittenDirectory) -> None:
    written.segment(ten_batches())
    bounds = {"startingOffsets": json.dumps({"t": {"0": 15}}), "endingOffsets": json.dumps({"t": {"0": 18}})}
    assert read_offsets(written.path, **bounds) == [15, 16, 17]
