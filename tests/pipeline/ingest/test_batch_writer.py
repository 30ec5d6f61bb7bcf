"""Values are decoded: those that fit are in the table, the others go to their place."""

import json
from pathlib import Path
from traceback import format_exception
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit, raise_error

from barnabas.pipeline.errors import OptionError, PipelineError
from barnabas.pipeline.ingest import BatchWriter, ValueOptions, WrittenBatch
from barnabas.pipeline.ingest.invalid_records import IntoSideTable, Rejected
from barnabas.pipeline.ingest.values.decoding import ValueDecoding
from barnabas.pipeline.tables import TableOptions
from barnabas.pipeline.tables.parquet.table import ParquetTable
from tests.pipeline.tables.parquet.test_table import CutError, cut_at

SCHEMA = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}


@pytest.fixture
def schema_file(tmp_path: Path) -> str:
    path = tmp_path / "order.json"
    path.write_text(json.dumps(SCHEMA))
    return str(path)


def frame(spark: SparkSession, *texts: str | None) -> DataFrame:
    """Records with these values, at offsets from 0 on."""
    arguments = ", ".join("null" if text is None else f"'{text}'" for text in texts)
    return spark.sql(
        "select pos as offset, 'orders' as topic, 0 as partition, cast(col as binary) as value"
        f" from (select posexplode(array({arguments})))"
    )


class Tables:
    """A table and its side table, and batches written to them."""

    def __init__(self, spark: SparkSession, directory: Path, schema_file: str, **values: Any) -> None:
        self.spark = spark
        self.table, self.side = str(directory / "table"), str(directory / "side")
        self.decoding = ValueDecoding(ValueOptions(schema_file=schema_file, **values))
        self.written: list[WrittenBatch] = []

    def write(self, rows: DataFrame, batch_id: int, step: str = "", *, with_side: bool = True) -> None:
        side = IntoSideTable(ParquetTable(self.spark, TableOptions(location=self.side)))
        table = ParquetTable(self.spark, TableOptions(location=self.table), cut_at(step))
        take_invalid = side if with_side else None
        writer = BatchWriter(table, self.decoding, take_invalid, query="q", at_batch=self.written.append)
        writer(rows, batch_id)

    def rows(self, location: str, *columns: str) -> list[tuple[Any, ...]]:
        found: list[Any] = self.spark.read.parquet(location).selectExpr(*columns).collect()
        return sorted(tuple(row) for row in found)


def test_values_that_do_not_fit_go_to_the_side_table(
    spark: SparkSession, tmp_path: Path, schema_file: str
) -> None:
    tables = Tables(spark, tmp_path, schema_file)
    tables.write(frame(spark, '{"id": 1}', "nonsense", '{"id": 3}', None, '{"id": "x"}'), 0)
    assert tables.rows(tables.table, "offset", "value.id") == [(0, 1), (2, 3), (3, None)]
    bad = tables.rows(tables.side, "topic", "partition", "offset", "string(value)", "reason is not null")
    assert bad == [("orders", 0, 1, "nonsense", True), ("orders", 0, 4, '{"id": "x"}', True)]
    assert (tables.written[0].record_count, tables.written[0].invalid_count) == (3, 2)


@pytest.mark.parametrize("step", ["staged", "placed", "committed", "cleaned"])
def test_a_cut_at_any_step_leaves_both_tables_right(
    spark: SparkSession, tmp_path: Path, schema_file: str, step: str
) -> None:
    tables = Tables(spark, tmp_path, schema_file)
    batch = frame(spark, '{"id": 1}', "nonsense")
    with pytest.raises(CutError):
        tables.write(batch, 0, step)
    tables.write(batch, 0)
    assert tables.rows(tables.table, "value.id") == [(1,)]
    assert tables.rows(tables.side, "offset") == [(1,)]


@pytest.mark.parametrize(("step", "is_repeated"), [("placed", False), ("committed", True)])
def test_a_repeated_batch_is_counted_like_any_other(
    spark: SparkSession, tmp_path: Path, schema_file: str, step: str, is_repeated: bool
) -> None:
    tables = Tables(spark, tmp_path, schema_file)
    batch = frame(spark, '{"id": 1}', "nonsense", '{"id": 3}')
    with pytest.raises(CutError):
        tables.write(batch, 0, step)
    tables.write(batch, 0)
    (written,) = tables.written
    assert (written.record_count, written.invalid_count) == (2, 1)
    assert written.is_repeated is is_repeated


def test_a_repeated_batch_whose_records_are_gone_is_not_counted(
    spark: SparkSession, tmp_path: Path, schema_file: str
) -> None:
    tables = Tables(spark, tmp_path, schema_file)
    tables.write(frame(spark, '{"id": 1}'), 0)
    gone = frame(spark, '{"id": 1}').withColumn("value", raise_error(lit("gone")).cast("binary"))
    tables.write(gone, 0)
    assert tables.written[1].is_repeated
    assert tables.written[1].record_count is None


def test_an_error_of_java_is_reported_by_its_root_cause_without_the_stack(
    spark: SparkSession, tmp_path: Path, schema_file: str
) -> None:
    """Spark's search for the cause of a batch's failure overflows the stack of its thread otherwise."""
    (tmp_path / "file").touch()
    tables = Tables(spark, tmp_path / "file", schema_file)
    with pytest.raises(PipelineError, match=r"^Batch 0 was not written: .* not a directory") as raised:
        tables.write(frame(spark, '{"id": 1}'), 0)
    assert "py4j.protocol" not in "".join(format_exception(raised.value))


def test_a_batch_in_which_nothing_fits_leaves_the_table_alone(
    spark: SparkSession, tmp_path: Path, schema_file: str
) -> None:
    tables = Tables(spark, tmp_path, schema_file)
    tables.write(frame(spark, "nonsense"), 0)
    assert tables.rows(tables.side, "offset") == [(0,)]
    assert not list((tmp_path / "table").glob("batch=*"))


def test_without_a_place_for_them_the_first_is_named(
    spark: SparkSession, tmp_path: Path, schema_file: str
) -> None:
    tables = Tables(spark, tmp_path, schema_file)
    with pytest.raises(PipelineError, match=r"1 record of batch 7 .* orders-0 offset 1: it is no JSON"):
        tables.write(frame(spark, '{"id": 1}', "nonsense"), 7, with_side=False)


def test_fields_become_columns_with_flatten(spark: SparkSession, tmp_path: Path, schema_file: str) -> None:
    tables = Tables(spark, tmp_path, schema_file, flatten=True)
    tables.write(frame(spark, '{"id": 1}'), 0)
    assert spark.read.parquet(tables.table).columns == ["offset", "topic", "partition", "id", "batch"]


def test_a_field_with_the_name_of_a_record_column_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "clash.json"
    path.write_text('{"type": "object", "properties": {"Offset": {"type": "integer"}}}')
    tables = Tables(spark, tmp_path, str(path), flatten=True)
    with pytest.raises(OptionError, match="flatten: the value has a field 'Offset'"):
        tables.write(frame(spark, "{}"), 0)


def test_rejected_records_are_decided_again_when_a_batch_is_repeated(
    spark: SparkSession, tmp_path: Path, schema_file: str
) -> None:
    """The source forgets decisions about a batch that is repeated."""
    directory = tmp_path / "acks"
    directory.mkdir()
    table = ParquetTable(spark, TableOptions(location=str(tmp_path / "table")))
    decoding = ValueDecoding(ValueOptions(schema_file=schema_file))
    writer = BatchWriter(table, decoding, Rejected(str(directory)), query="q")
    for _ in range(2):
        writer(frame(spark, '{"id": 1}', "nonsense"), 0)
        (decided,) = directory.glob("*.json")
        assert json.loads(decided.read_text())["reject"] == {"orders": {"0": [[1, 1]]}}
        decided.unlink()


def test_a_plain_frame_needs_the_name_of_a_query(spark: SparkSession, tmp_path: Path) -> None:
    writer = BatchWriter(ParquetTable(spark, TableOptions(location=str(tmp_path / "table"))))
    with pytest.raises(PipelineError, match="no batch of a streaming query"):
        writer(frame(spark, "x"), 0)
