"""Compaction keeps every record once for readers of the log, after a cut at any step."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from pyspark.sql import SparkSession

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.tables import CompactOptions, TableOptions, compact
from barnabas.pipeline.tables.hadoop_files import HadoopFiles
from barnabas.pipeline.tables.parquet.claims import Claims
from barnabas.pipeline.tables.parquet.compaction import compact_parquet
from barnabas.pipeline.tables.parquet.table import committed_files
from tests.pipeline.tables.parquet.test_table import CutError, cut_at, listed, seen, write

STEPS = ("claimed", "staged", "placed", "committed", "removed", "released")
RECORDS = [1, 2, 3, 4, 5, 6]


@pytest.fixture
def location(spark: SparkSession, tmp_path: Path) -> str:
    """A table of three batches in two partitions: six small files."""
    location = str(tmp_path / "a table")
    for batch_id in range(3):
        write(spark, location, batch_id, 2 * batch_id + 1, 2 * batch_id + 2, partition_by=["topic"])
    return location


def options(location: str, *, dry_run: bool = False) -> CompactOptions:
    return CompactOptions(table=TableOptions(location=location), dry_run=dry_run)


def leftovers(spark: SparkSession, location: str) -> list[object]:
    """Hidden things that should not be there, directories that are in no version, and a claim."""
    places = {
        unquote(urlsplit(uri).path).split("/batch=")[1].split("/")[0]
        for uri in committed_files(spark, location)
    }
    staged = [path for path in (Path(location) / "_staging").glob("*") if path.suffix != ".crc"]
    unused = [
        path for path in Path(location).glob("batch=*") if path.name.removeprefix("batch=") not in places
    ]
    claim = Claims(HadoopFiles(spark, location)).current()
    return [*staged, *unused, *([] if claim is None else [claim])]


def test_small_files_become_one_for_each_partition(spark: SparkSession, location: str) -> None:
    result = compact(spark, options(location))
    assert (result.removed_count, result.added_count) == (6, 2)
    assert len(committed_files(spark, location)) == 2
    assert seen(spark, location) == listed(location) == RECORDS
    rows = spark.read.parquet(location).where("topic = 'topic 1'").select("offset").collect()
    assert sorted(row["offset"] for row in rows) == [1, 3, 5]
    assert compact(spark, options(location)).removed_count == 0


@pytest.mark.parametrize("step", STEPS)
def test_a_cut_at_any_step_is_finished_or_undone(spark: SparkSession, location: str, step: str) -> None:
    with pytest.raises(CutError):
        compact_parquet(spark, options(location), cut_at(step))
    assert seen(spark, location) == RECORDS

    write(spark, location, 3, 7, 8, partition_by=["topic"])
    assert seen(spark, location) == [*RECORDS, 7, 8]

    compact(spark, options(location))
    assert seen(spark, location) == listed(location) == [*RECORDS, 7, 8]
    assert len(committed_files(spark, location)) == 2
    assert leftovers(spark, location) == []


def test_readers_of_the_log_see_each_record_once_at_any_time(spark: SparkSession, location: str) -> None:
    looks: list[tuple[str, list[int]]] = []
    compact_parquet(spark, options(location), lambda step: looks.append((step, seen(spark, location))))
    assert looks == [(step, RECORDS) for step in STEPS]


def test_a_batch_may_be_committed_meanwhile(spark: SparkSession, location: str) -> None:
    def at_step(step: str) -> None:
        if step == "placed":
            write(spark, location, 3, 7, partition_by=["topic"])

    compact_parquet(spark, options(location), at_step)
    assert seen(spark, location) == listed(location) == [*RECORDS, 7]


@pytest.mark.parametrize("step", ["claimed", "staged", "placed"])
def test_a_run_that_was_taken_over_stops(spark: SparkSession, location: str, step: str) -> None:
    """It was believed dead, and isn't."""
    compact_parquet_once = once_at(step, lambda: compact(spark, options(location)))
    with pytest.raises(PipelineError, match=r"another compaction has taken over|cannot be moved"):
        compact_parquet(spark, options(location), compact_parquet_once)
    assert seen(spark, location) == listed(location) == RECORDS
    assert len(committed_files(spark, location)) == 2


@pytest.mark.parametrize("step", ["committed", "removed"])
def test_a_run_that_was_taken_over_after_its_commit_leaves_the_claim_of_its_successor(
    spark: SparkSession, location: str, step: str
) -> None:
    """The successor finishes the run's work, claims the table anew, and is cut short."""

    def succeed() -> None:
        write(spark, location, 3, 7, 8, partition_by=["topic"])
        with pytest.raises(CutError):
            compact_parquet(spark, options(location), cut_at("placed"))

    ends: dict[str, AbstractContextManager[object]] = {
        "committed": pytest.raises(PipelineError, match="another compaction has taken over"),
        "removed": nullcontext(),  # its work is done
    }
    with ends[step]:
        compact_parquet(spark, options(location), once_at(step, succeed))
    assert seen(spark, location) == [*RECORDS, 7, 8]

    compact(spark, options(location))
    assert seen(spark, location) == listed(location) == [*RECORDS, 7, 8]
    assert leftovers(spark, location) == []


def test_files_that_a_run_wrote_after_it_was_taken_over_are_removed_by_a_later_run(
    spark: SparkSession, location: str
) -> None:
    def succeed() -> None:
        with pytest.raises(CutError):
            compact_parquet(spark, options(location), cut_at("claimed"))

    with pytest.raises(PipelineError, match="another compaction has taken over"):
        compact_parquet(spark, options(location), once_at("claimed", succeed))
    assert listed(location) == sorted([*RECORDS, *RECORDS])

    compact(spark, options(location))
    assert seen(spark, location) == listed(location) == RECORDS
    assert leftovers(spark, location) == []


def once_at(step: str, act: Callable[[], object]) -> Callable[[str], None]:
    def at_step(reached: str) -> None:
        if reached == step:
            act()

    return at_step


def test_a_replayed_batch_is_known_after_compaction(spark: SparkSession, location: str) -> None:
    compact(spark, options(location))
    write(spark, location, 2, 5, 6, partition_by=["topic"])
    assert seen(spark, location) == RECORDS


def test_a_dry_run_counts_and_changes_nothing(spark: SparkSession, location: str) -> None:
    before = committed_files(spark, location)
    result = compact(spark, options(location, dry_run=True))
    assert (result.removed_count, result.added_count) == (6, 2)
    assert committed_files(spark, location) == before


def test_there_has_to_be_a_table(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="there is no table here"):
        compact(spark, options(str(tmp_path / "nothing")))
