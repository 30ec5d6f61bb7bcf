"""Where a time begins in a partition."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.pipeline.log_source.offsets_by_time import offset_for_time
from barnabas.protocol.record_batch import Compression
from tests.pipeline.log_source.reading import read_offsets
from tests.pipeline.log_source.written_directory import WrittenDirectory, batch_of


@pytest.fixture
def written(tmp_path: Path) -> WrittenDirectory:
    """Times of the batches: 100-109, 300-309, 200-209; then 400-409."""
    written = WrittenDirectory(tmp_path)
    times = [100, 300, 200]
    written.segment(
        [
            batch_of(10 * number, 10, time_ms=time, compression=Compression.LZ4)
            for number, time in enumerate(times)
        ]
    )
    written.segment([batch_of(30, 10, time_ms=400)])
    return written


@pytest.mark.parametrize(
    ("time_ms", "offset"),
    [(0, 0), (100, 0), (105, 5), (110, 10), (205, 10), (309, 19), (310, 30), (409, 39), (410, None)],
)
def test_a_time_finds_the_first_record_that_is_not_earlier(
    written: WrittenDirectory, time_ms: int, offset: int | None
) -> None:
    assert offset_for_time(written.folder(), time_ms) == offset


def test_records_below_the_log_start_are_not_found(written: WrittenDirectory) -> None:
    written.checkpoint("log-start-offset-checkpoint", {("t", 0): 14})
    assert offset_for_time(written.folder(), 100) == 14


def test_a_read_begins_and_ends_at_times(written: WrittenDirectory) -> None:
    assert read_offsets(written.path, startingTimestamp=305, endingTimestamp=405) == list(range(15, 35))


def test_a_read_from_a_time_that_nothing_has_reached_is_empty(written: WrittenDirectory) -> None:
    assert read_offsets(written.path, startingTimestamp=410) == []


def test_a_read_to_a_time_that_nothing_has_reached_ends_with_the_log(written: WrittenDirectory) -> None:
    assert read_offsets(written.path, endingTimestamp=410) == list(range(40))
