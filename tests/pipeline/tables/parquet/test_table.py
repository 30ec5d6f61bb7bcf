"""A Parquet table takes each batch once, and is right for its readers at every step in between."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from barnabas.pipeline.errors import OptionError, PipelineError
from barnabas.pipeline.ingest import BatchWriter
from barnabas.pipeline.tables import TableOptions
from barnabas.pipeline.tables.batches import UNKNOWN, Batch
from barnabas.pipeline.tables.hadoop_files import HadoopFiles
from barnabas.pipeline.tables.parquet.log import Snapshot
from barnabas.pipeline.tables.parquet.log_files import VERSIONS_KEPT, LogFiles
from barnabas.pipeline.tables.parquet.table import ParquetTable, committed_files

STEPS = ("staged", "placed", "committed", "cleaned")


class CutError(Exception):
    """The process ends here."""


@pytest.fixture
def location(tmp_path: Path) -> str:
    return str(tmp_path / "a table")


def numbers(spark: SparkSession, *wanted: int) -> DataFrame:
    """Rows like a source's: `offset` and a `topic` by its last digit."""
    numbers = ", ".join(map(str, wanted))
    return spark.sql(
        f"select offset, concat('topic ', offset % 2) as topic from "
        f"(select explode(array({numbers})) as offset)"
    ).selectExpr("cast(offset as bigint) as offset", "topic")


def write(
    spark: SparkSession,
    location: str,
    batch_id: int,
    *wanted: int,
    query: str = "q",
    fingerprint: int = UNKNOWN,
    at_step: Callable[[str], None] = lambda _step: None,
    **options: Any,
) -> None:
    table = ParquetTable(spark, TableOptions(location=location, **options), at_step)
    BatchWriter(table, query=query, fingerprint=lambda _: fingerprint)(numbers(spark, *wanted), batch_id)


def seen(spark: SparkSession, location: str) -> list[int]:
    """The rows that Spark's own reader gets, by the log."""
    return sorted(row["offset"] for row in spark.read.parquet(location).select("offset").collect())


def listed(location: str) -> list[int]:
    """The rows that a reader gets that lists directories and does not know the log."""
    dataset: Any = import_module("pyarrow.dataset")
    found = dataset.dataset(location, partitioning="hive").to_table(columns=["offset"])
    return sorted(found.column("offset").to_pylist())


def cut_at(step: str) -> Callable[[str], None]:
    def at_step(reached: str) -> None:
        if reached == step:
            raise CutError

    return at_step


def test_a_batch_is_in_the_table_once_however_often_it_is_written(spark: SparkSession, location: str) -> None:
    for batch_id, wanted in ((0, (1, 2)), (0, (1, 2)), (1, (3, 4)), (1, (3, 4))):
        write(spark, location, batch_id, *wanted)
    assert seen(spark, location) == listed(location) == [1, 2, 3, 4]


@pytest.mark.parametrize(("batch_id", "fingerprint"), [(1, 8), (0, 9), (0, 7)])
def test_a_batch_that_an_older_checkpoint_makes_is_not_taken_for_a_repetition(
    spark: SparkSession, location: str, batch_id: int, fingerprint: int
) -> None:
    write(spark, location, 0, 1, fingerprint=7)
    write(spark, location, 1, 2, fingerprint=9)
    before = committed_files(spark, location)
    with pytest.raises(PipelineError, match=f"has batch 1 .* now batch {batch_id} .* older than the table"):
        write(spark, location, batch_id, 3, fingerprint=fingerprint)
    assert committed_files(spark, location) == before
    assert seen(spark, location) == listed(location) == [1, 2]
    write(spark, location, 1, 2, fingerprint=9)
    write(spark, location, 2, 3, fingerprint=10)
    assert seen(spark, location) == listed(location) == [1, 2, 3]


def test_a_batch_that_was_placed_with_other_records_is_written_again(
    spark: SparkSession, location: str
) -> None:
    with pytest.raises(CutError):
        write(spark, location, 0, 1, 2, fingerprint=7, at_step=cut_at("placed"))
    write(spark, location, 0, 2, 3, fingerprint=8)
    assert seen(spark, location) == listed(location) == [2, 3]


@pytest.mark.parametrize("partition_by", [[], ["topic"]])
@pytest.mark.parametrize("step", STEPS)
def test_a_cut_at_any_step_neither_loses_nor_doubles(
    spark: SparkSession, location: str, step: str, partition_by: list[str]
) -> None:
    write(spark, location, 0, 1, 2, 3, partition_by=partition_by)
    with pytest.raises(CutError):
        write(spark, location, 1, 4, 5, 6, partition_by=partition_by, at_step=cut_at(step))

    before = [1, 2, 3] if step in ("staged", "placed") else [1, 2, 3, 4, 5, 6]
    assert seen(spark, location) == before
    assert listed(location) in ([1, 2, 3], [1, 2, 3, 4, 5, 6])

    write(spark, location, 1, 4, 5, 6, partition_by=partition_by)
    assert seen(spark, location) == listed(location) == [1, 2, 3, 4, 5, 6]
    write(spark, location, 2, 7, partition_by=partition_by)
    assert seen(spark, location) == listed(location) == [1, 2, 3, 4, 5, 6, 7]
    assert hidden(location) == []


def hidden(location: str) -> list[str]:
    return [path.name for path in (Path(location) / "_staging").iterdir() if not path.name.endswith(".crc")]


def test_readers_see_whole_batches_while_one_is_written(spark: SparkSession, location: str) -> None:
    write(spark, location, 0, 1, partition_by=["topic"])
    looks: list[tuple[str, list[int], list[int]]] = []

    def look(step: str) -> None:
        looks.append((step, seen(spark, location), listed(location)))

    write(spark, location, 1, 2, 3, 4, partition_by=["topic"], at_step=look)
    assert looks == [
        ("staged", [1], [1]),
        ("placed", [1], [1, 2, 3, 4]),
        ("committed", [1, 2, 3, 4], [1, 2, 3, 4]),
        ("cleaned", [1, 2, 3, 4], [1, 2, 3, 4]),
    ]


def test_queries_do_not_know_each_others_batches(spark: SparkSession, location: str) -> None:
    write(spark, location, 0, 1, query="one")
    write(spark, location, 0, 2, query="two")
    assert seen(spark, location) == [1, 2]


def test_two_tries_of_one_batch_at_once_count_once(spark: SparkSession, location: str) -> None:
    """The first driver was believed dead, and isn't."""
    overtaken: Iterator[None] = iter([None])

    def overtake(step: str) -> None:
        if step == "staged" and next(overtaken, 0) is None:
            write(spark, location, 0, 1, 2)

    with_other = numbers(spark, 1, 2)
    table = ParquetTable(spark, TableOptions(location=location), overtake)
    BatchWriter(table, query="q")(with_other, 0)
    assert seen(spark, location) == listed(location) == [1, 2]


def test_another_writer_may_commit_in_between(spark: SparkSession, location: str) -> None:
    def commit_another(step: str) -> None:
        if step == "placed":
            write(spark, location, 0, 7, query="other")

    write(spark, location, 0, 1, at_step=commit_another)
    assert seen(spark, location) == [1, 7]


def test_an_empty_batch_leaves_nothing(spark: SparkSession, location: str) -> None:
    write(spark, location, 0, 1)
    before = committed_files(spark, location)
    write(spark, location, 1)
    assert committed_files(spark, location) == before
    assert sorted(path.name for path in Path(location).iterdir() if path.name.startswith("batch=")) == [
        "batch=q-000000000000"
    ]


def test_committed_files_are_the_table_for_readers_without_the_log(
    spark: SparkSession, location: str
) -> None:
    assert committed_files(spark, location) == []
    write(spark, location, 0, 1, 2)
    write(spark, location, 1, 3)
    found = committed_files(spark, location)
    assert all(uri.startswith("file:///") and uri.endswith(".parquet") for uri in found)
    assert sorted(row["offset"] for row in spark.read.parquet(*map(unquoted, found)).collect()) == [1, 2, 3]


def unquoted(uri: str) -> str:
    return uri.replace("%20", " ")


def test_partition_columns_are_computed_and_read_back(spark: SparkSession, location: str) -> None:
    frame = spark.sql(
        "select * from values (1L, timestamp'2026-01-01 23:59:59'), (2L, timestamp'2026-01-02 00:00:00')"
        " as rows(offset, timestamp)"
    )
    options = TableOptions(location=location, partition_by=["date", "parity=offset % 2"])
    BatchWriter(ParquetTable(spark, options), query="q")(frame, 0)
    read = spark.read.parquet(location).orderBy("offset")
    assert [(str(row["date"]), row["parity"]) for row in read.collect()] == [
        ("2026-01-01", 1),
        ("2026-01-02", 0),
    ]
    assert read.where("date = '2026-01-02'").count() == 1


def test_a_table_keeps_its_partition_columns(spark: SparkSession, location: str) -> None:
    write(spark, location, 0, 1, partition_by=["topic"])
    with pytest.raises(OptionError, match=r"partition_by: .* is partitioned by topic, not by nothing"):
        write(spark, location, 1, 2)


def test_a_batch_that_was_placed_with_other_columns_is_written_again(
    spark: SparkSession, location: str
) -> None:
    with pytest.raises(CutError):
        write(spark, location, 0, 1, 2, at_step=cut_at("placed"))
    write(spark, location, 0, 1, 2, partition_by=["topic"])
    assert seen(spark, location) == listed(location) == [1, 2]


def test_columns_may_be_added_and_not_changed(spark: SparkSession, location: str) -> None:
    write(spark, location, 0, 1)
    table = ParquetTable(spark, TableOptions(location=location))
    wider = numbers(spark, 2).selectExpr("*", "'new' as more")
    BatchWriter(table, query="q")(wider, 1)
    rows = spark.read.option("mergeSchema", "true").parquet(location).orderBy("offset").collect()
    assert [row["more"] for row in rows] == [None, "new"]
    with pytest.raises(PipelineError, match="column offset is bigint in the table and string"):
        BatchWriter(table, query="q")(wider.selectExpr("cast(offset as string) offset", "topic"), 2)


def test_files_of_another_writer_are_not_a_table(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "orders.csv").write_text("1,2")
    with pytest.raises(PipelineError, match=r"orders\.csv was not written by ingest"):
        write(spark, str(tmp_path / "table"), 0, 1)


def test_a_log_of_sparks_own_sink_is_not_taken_over(spark: SparkSession, tmp_path: Path) -> None:
    log = tmp_path / "table" / "_spark_metadata"
    log.mkdir(parents=True)
    (log / "0").write_text("v1\n")
    with pytest.raises(PipelineError, match="_spark_metadata/0 is no log of a table that ingest has written"):
        write(spark, str(tmp_path / "table"), 0, 1)


def test_a_writer_that_sleeps_while_others_add_many_versions_adds_the_newest_version(
    spark: SparkSession, location: str
) -> None:
    write(spark, location, 0, 1)
    log = LogFiles(HadoopFiles(spark, location))
    latest_versions: list[int] = []

    def changed(latest: Snapshot) -> Snapshot:
        latest_versions.append(latest.version)
        if len(latest_versions) == 1:
            for _ in range(VERSIONS_KEPT + 1):  # removes the version behind `latest`
                log.change(next_version, "this writer")
        return latest.with_batch(Batch("slow", 0), ())

    log.change(changed, "this writer")
    assert latest_versions == [0, VERSIONS_KEPT + 1]
    assert set(log.latest().batches) == {"q", "slow"}


def next_version(latest: Snapshot) -> Snapshot:
    return replace(latest, version=latest.version + 1)


def test_object_stores_are_refused_because_they_cannot_rename(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, location: str
) -> None:
    monkeypatch.setattr("barnabas.pipeline.tables.parquet.table.WITHOUT_ATOMIC_RENAME", {"file"})
    with pytest.raises(OptionError, match="location: file cannot move a directory in one step"):
        write(spark, location, 0, 1)


def test_a_filesystem_that_hadoop_does_not_know_is_named(spark: SparkSession) -> None:
    with pytest.raises(PipelineError, match="nosuch://"):
        write(spark, "nosuch://lake/orders", 0, 1)
