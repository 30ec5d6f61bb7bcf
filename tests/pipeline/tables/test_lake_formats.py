"""Delta Lake and Iceberg take each batch once, too; both are read back by packages of their own."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import deltalake
import pytest
from pyiceberg.catalog import load_catalog
from pyspark.sql import DataFrame, SparkSession

from barnabas.pipeline.errors import OptionError, PipelineError
from barnabas.pipeline.ingest import BatchWriter
from barnabas.pipeline.tables import CompactOptions, TableOptions, compact
from barnabas.pipeline.tables.batches import UNKNOWN, Batch
from barnabas.pipeline.tables.lake_table import LakeTable
from barnabas.pipeline.tables.opening import open_table

FORMATS = ("delta", "iceberg")


class Lake:
    """A table of one format: written by the tested code, read by the format's own package."""

    def __init__(self, format_: str, directory: Path) -> None:
        self.format: Any = format_
        self.directory = directory
        warehouse = directory / "warehouse"
        warehouse.mkdir()
        self.catalog = {
            "name": "mine",
            "type": "sql",
            "uri": f"sqlite:///{directory}/catalog.db",
            "warehouse": warehouse.as_uri(),
        }

    def options(self, **more: Any) -> TableOptions:
        if self.format == "delta":
            return TableOptions(location=str(self.directory / "table"), format="delta", **more)
        return TableOptions(location="sales.orders", format="iceberg", storage=self.catalog, **more)

    def arrow(self) -> Any:
        if self.format == "delta":
            delta: Any = deltalake.DeltaTable(str(self.directory / "table"))
            return delta.to_pyarrow_table()
        iceberg: Any = load_catalog(**self.catalog).load_table("sales.orders")
        return iceberg.scan().to_arrow()

    def seen(self) -> list[int]:
        return sorted(self.arrow().column("offset").to_pylist())

    def batches(self) -> int:
        """Commits that hold data."""
        if self.format == "delta":
            history = deltalake.DeltaTable(str(self.directory / "table")).history()
            return sum(entry["operation"] == "WRITE" for entry in history)
        return len(load_catalog(**self.catalog).load_table("sales.orders").snapshots())


@pytest.fixture(params=FORMATS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake(request.param, tmp_path)


def numbers(spark: SparkSession, *wanted: int) -> DataFrame:
    array = ", ".join(f"{one}L" for one in wanted)
    return spark.sql(
        "select offset, concat('topic ', offset % 2) as topic, timestamp_seconds(offset) as timestamp,"
        " array(named_struct('key', 'k', 'value', cast('v' as binary))) as headers"
        f" from (select explode(array({array})) as offset)"
    )


def write(
    spark: SparkSession, lake: Lake, batch_id: int, *wanted: int, fingerprint: int = UNKNOWN, **more: Any
) -> None:
    table = open_table(spark, lake.options(**more))
    BatchWriter(table, query="q", fingerprint=lambda _: fingerprint)(numbers(spark, *wanted), batch_id)


def test_a_batch_is_in_the_table_once_however_often_it_is_written(spark: SparkSession, lake: Lake) -> None:
    partition_by = ["topic", "date"]
    for batch_id, wanted in ((0, (1, 2)), (0, (1, 2)), (1, (3, 90_000)), (1, (3, 90_000))):
        write(spark, lake, batch_id, *wanted, partition_by=partition_by)
    assert lake.seen() == [1, 2, 3, 90_000]
    assert lake.batches() == 2
    table = lake.arrow()
    found = sorted(zip(*(map(str, table.column(name).to_pylist()) for name in partition_by), strict=True))
    assert found == [
        ("topic 0", "1970-01-01"),
        ("topic 0", "1970-01-02"),
        ("topic 1", "1970-01-01"),
        ("topic 1", "1970-01-01"),
    ]


def test_a_batch_that_an_older_checkpoint_makes_is_not_taken_for_a_repetition(
    spark: SparkSession, lake: Lake
) -> None:
    write(spark, lake, 0, 1, fingerprint=7)
    overtaken = open_table(spark, lake.options()).stage(numbers(spark, 3), Batch("q", 1, 8))
    assert overtaken is not None
    write(spark, lake, 1, 2, fingerprint=9)
    for batch_id, fingerprint in ((1, 8), (0, 9), (0, 7)):
        with pytest.raises(PipelineError, match=f"has batch 1 .* now batch {batch_id} .* older than"):
            write(spark, lake, batch_id, 3, fingerprint=fingerprint)
    with pytest.raises(PipelineError, match=r"has batch 1 .* older than the table"):
        overtaken.commit()
    write(spark, lake, 1, 2, fingerprint=9)
    assert lake.seen() == [1, 2]
    write(spark, lake, 2, 3, fingerprint=10)
    assert lake.seen() == [1, 2, 3]


def test_a_batch_that_was_staged_and_never_committed_is_written_again(
    spark: SparkSession, lake: Lake
) -> None:
    write(spark, lake, 0, 1)
    staged = open_table(spark, lake.options()).stage(numbers(spark, 2, 3), Batch("q", 1))
    assert staged is not None
    assert lake.seen() == [1]
    write(spark, lake, 1, 2, 3)
    assert lake.seen() == [1, 2, 3]
    assert staged.commit().file_count == 0, "the other try was faster"
    assert lake.seen() == [1, 2, 3]


def test_another_writer_may_commit_in_between(spark: SparkSession, lake: Lake) -> None:
    table: LakeTable = open_table(spark, lake.options())
    staged = table.stage(numbers(spark, 1), Batch("q", 0))
    assert staged is not None
    BatchWriter(open_table(spark, lake.options()), query="other")(numbers(spark, 2), 0)
    staged.commit()
    assert lake.seen() == [1, 2]


def test_columns_may_be_added_and_not_changed(spark: SparkSession, lake: Lake) -> None:
    write(spark, lake, 0, 1)
    wider = numbers(spark, 2).selectExpr("*", "'new' as more")
    BatchWriter(open_table(spark, lake.options()), query="q")(wider, 1)
    found = lake.arrow().sort_by("offset").column("more").to_pylist()
    assert found == [None, "new"]
    changed = wider.withColumn("offset", wider["offset"].cast("string"))
    with pytest.raises(PipelineError, match="column offset is bigint in the table and string"):
        BatchWriter(open_table(spark, lake.options()), query="q")(changed, 2)


def test_a_table_keeps_its_partition_columns(spark: SparkSession, lake: Lake) -> None:
    write(spark, lake, 0, 1, partition_by=["topic"])
    with pytest.raises(OptionError, match=r"partition_by: .* is partitioned by topic, not by nothing"):
        write(spark, lake, 1, 2)


def test_partitions_may_be_null_or_need_escapes(spark: SparkSession, lake: Lake) -> None:
    frame = spark.sql("select * from values (1L, 'a/b c%d'), (2L, null), (3L, 'ö=') as rows(offset, topic)")
    BatchWriter(open_table(spark, lake.options(partition_by=["topic"])), query="q")(frame, 0)
    found = lake.arrow().sort_by("offset").column("topic").to_pylist()
    assert found == ["a/b c%d", None, "ö="]


def test_an_unusable_catalog_is_named(spark: SparkSession) -> None:
    options = TableOptions(location="a.b", format="iceberg", storage={"type": "nosuch"})
    with pytest.raises(OptionError, match="storage: there is no such Iceberg catalog"):
        open_table(spark, options)


def test_compaction_merges_small_files_and_keeps_every_record(spark: SparkSession, lake: Lake) -> None:
    for batch_id in range(3):
        write(spark, lake, batch_id, 2 * batch_id, 2 * batch_id + 1, partition_by=["topic"])
    options = CompactOptions(table=lake.options())
    assert compact(spark, replace(options, dry_run=True)).removed_count == 6
    result = compact(spark, options)
    assert (result.removed_count, result.added_count) == (6, 2)
    assert lake.seen() == [0, 1, 2, 3, 4, 5]
    write(spark, lake, 2, 4, 5, partition_by=["topic"])
    assert lake.seen() == [0, 1, 2, 3, 4, 5], "a batch that was merged is known"
    assert compact(spark, options).removed_count == 0


def test_there_has_to_be_a_table_to_compact(spark: SparkSession, lake: Lake) -> None:
    with pytest.raises(PipelineError, match="there is no table here"):
        compact(spark, CompactOptions(table=lake.options()))
