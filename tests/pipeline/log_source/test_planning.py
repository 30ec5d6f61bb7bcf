"""Planning: options and filters become tasks; missing partitions and offsets are errors."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, In, LessThan

from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.log_source import planning
from tests.pipeline.log_source.reading import offsets_of, plan_read, read_offsets, rows_of
from tests.pipeline.log_source.written_directory import WrittenDirectory, batch_of


@pytest.fixture
def written(tmp_path: Path) -> WrittenDirectory:
    """Topics a and b of two partitions, each of offsets 100 to 299 in two segments."""
    written = WrittenDirectory(tmp_path)
    for topic in ("a", "b"):
        for partition in (0, 1):
            for base_offset in (100, 200):
                batches = [batch_of(base_offset + 10 * number, 10) for number in range(10)]
                written.segment(batches, topic=topic, partition=partition)
    return written


def test_tasks_come_partition_by_partition_in_the_logs_order(written: WrittenDirectory) -> None:
    tasks = plan_read(written.path)
    places = [(task.piece.topic, task.piece.partition, task.piece.first_offset) for task in tasks]
    assert places == [(t, p, offset) for t in ("a", "b") for p in (0, 1) for offset in (100, 200)]


def test_tasks_can_be_pickled(written: WrittenDirectory) -> None:
    tasks = plan_read(written.path)
    assert pickle.loads(pickle.dumps(tasks)) == tasks


@pytest.mark.parametrize(
    ("filters", "places"),
    [
        ([EqualTo(("topic",), "a"), EqualTo(("partition",), 1)], [("a", 1, 100), ("a", 1, 200)]),
        ([In(("topic",), ("b", "c")), GreaterThanOrEqual(("offset",), 250)], [("b", 0, 240), ("b", 1, 240)]),
        ([EqualTo(("topic",), "c")], []),
        ([EqualTo(("topic",), "a"), GreaterThanOrEqual(("offset",), 300)], [("a", 0, 290), ("a", 1, 290)]),
        ([LessThan(("offset",), 100)], []),
    ],
)
def test_filters_prune_partitions_segments_and_slices(
    written: WrittenDirectory, filters: list[Any], places: list[tuple[str, int, int]]
) -> None:
    tasks = plan_read(written.path, filters)
    assert [(task.piece.topic, task.piece.partition, task.piece.first_offset) for task in tasks] == places


def test_filters_on_offsets_are_exact_and_read_less(written: WrittenDirectory) -> None:
    filters = [EqualTo(("topic",), "a"), GreaterThanOrEqual(("offset",), 155), LessThan(("offset",), 163)]
    tasks = plan_read(written.path, filters, columns="offset")
    assert offsets_of(tasks) == [*range(155, 163)] * 2
    everything = sum(task.piece.size_bytes for task in plan_read(written.path))
    assert sum(task.piece.size_bytes for task in tasks) * 10 < everything


def test_offsets_can_be_given_for_some_partitions(written: WrittenDirectory) -> None:
    asked = {"startingOffsets": json.dumps({"a": {"0": 290, "1": -1}})}
    rows = rows_of(plan_read(written.path, (), topics="a,b", columns="topic,partition", **asked))
    counts = [
        sum(row == {"topic": topic, "partition": number} for row in rows)
        for topic in ("a", "b")
        for number in (0, 1)
    ]
    assert counts == [10, 0, 200, 200]


@pytest.mark.parametrize(
    ("starting", "ending", "count"),
    [(-2, -1, 200), (-1, -1, 0), (-2, -2, 0), (100, 300, 200), (300, 300, 0), (150, 140, 0)],
)
def test_offsets_bound_a_read(written: WrittenDirectory, starting: int, ending: int, count: int) -> None:
    bounds = {
        "startingOffsets": json.dumps({"a": {"0": starting, "1": -1}}),
        "endingOffsets": json.dumps({"a": {"0": ending}}),
    }
    assert len(read_offsets(written.path, topics="a", **bounds)) == count


@pytest.mark.parametrize("option", ["startingOffsets", "endingOffsets"])
@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"a": {"0": 99}}, r"a-0 has no offset 99; it has offsets from 100 to 300 \(exclusive\)"),
        ({"a": {"0": 301}}, "a-0 has no offset 301"),
        ({"a": {"2": 5}}, "there is no partition 2 of topic 'a' to read"),
        ({"c": {"0": 5}}, "there is no partition 0 of topic 'c' to read"),
    ],
)
def test_offsets_that_are_not_there_are_refused(
    written: WrittenDirectory, option: str, asked: dict[str, dict[str, int]], reason: str
) -> None:
    with pytest.raises(OptionError, match=f"^{option}: {reason}"):
        plan_read(written.path, (), **{option: json.dumps(asked)})


def test_too_many_tasks_are_refused(written: WrittenDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "TASKS_MAX", 10)
    with pytest.raises(OptionError, match=r"^sliceBytes: makes more than 10 tasks"):
        plan_read(written.path, sliceBytes=1)


def test_a_directory_without_partitions_of_the_kind_gives_nothing(tmp_path: Path) -> None:
    assert plan_read(WrittenDirectory(tmp_path).path) == []
