"""Options that make no sense are refused, by the name of the field."""

from pathlib import Path
from typing import Any

import pytest

from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.ingest import CompactOptions, IngestOptions, TableOptions, ValueOptions
from barnabas.pipeline.ingest.merging import plan_merges
from barnabas.pipeline.ingest.partitioning import PartitionColumn, parse_partitioning

TABLE = TableOptions(location="lake")
VALUES = ValueOptions(schema_file="order.json")


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({"location": " "}, "location"),
        ({"location": "x", "format": "orc"}, "format"),
        ({"location": "x", "storage": {"a": "b"}}, "storage"),
        ({"location": "x", "partition_by": ["a b"]}, "partition_by"),
        ({"location": "x", "partition_by": ["a="]}, "partition_by"),
        ({"location": "x", "partition_by": ["a", "a=b"]}, "partition_by"),
        ({"location": "x", "partition_by": list("abcdefghi")}, "partition_by"),
    ],
)
def test_a_table(given: Any, option: str) -> None:
    with pytest.raises(OptionError) as caught:
        TableOptions(**given)
    assert caught.value.option == option


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({"source": "kafka"}, "source"),
        ({"checkpoint": ""}, "checkpoint"),
        ({"interval_ms": -1}, "interval_ms"),
        ({"invalid": "ignore"}, "invalid"),
        ({"invalid": "reject"}, "invalid"),
        ({"invalid": "side-table", "values": VALUES}, "side_table"),
        ({"side_table": TABLE, "values": VALUES}, "side_table"),
        ({"invalid": "side-table", "values": VALUES, "side_table": TABLE}, "side_table"),
        ({"invalid": "reject", "values": VALUES, "source": "kafka-topic"}, "invalid"),
    ],
)
def test_an_ingest(given: Any, option: str) -> None:
    with pytest.raises(OptionError) as caught:
        ingest_options(given)
    assert caught.value.option == option


def ingest_options(given: dict[str, Any]) -> IngestOptions:
    complete: dict[str, Any] = {"source_options": {}, "table": TABLE, "checkpoint": "c", **given}
    return IngestOptions(**complete)


@pytest.mark.parametrize("target_bytes", [0, 1023, 2**32 + 1])
def test_a_compaction(target_bytes: int) -> None:
    with pytest.raises(OptionError, match="target_bytes"):
        CompactOptions(table=TABLE, target_bytes=target_bytes)


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({"schema_file": "a.txt"}, "schema_file"),
        ({"schema_file": "a.json", "framing": "x"}, "framing"),
        ({"schema_file": "a.json", "message": "M"}, "message"),
    ],
)
def test_values(given: Any, option: str) -> None:
    with pytest.raises(OptionError) as caught:
        ValueOptions(**given)
    assert caught.value.option == option


def test_a_schema_file_is_not_read_without_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.pipeline.ingest.values.options.SCHEMA_BYTES_MAX", 3)
    (tmp_path / "a.json").write_text("null")
    with pytest.raises(OptionError, match="larger than 3 bytes"):
        ValueOptions(schema_file=str(tmp_path / "a.json")).read()


def test_partition_columns_are_names_or_expressions() -> None:
    assert parse_partitioning(["date", " hour = hour(timestamp) ", "same=a=b"]) == (
        PartitionColumn("date"),
        PartitionColumn("hour", "hour(timestamp)"),
        PartitionColumn("same", "a=b"),
    )


@pytest.mark.parametrize(
    ("sizes", "merged", "outputs"),
    [
        ([], [], []),
        ([10], [], []),
        ([10, 10], [[0, 1]], [1]),
        ([10, 51, 10], [[0, 2]], [1]),
        ([50, 50], [[0, 1]], [1]),
        ([50, 50, 50], [[0, 1, 2]], [2]),
        ([51, 51], [], []),
    ],
)
def test_files_of_at_most_half_the_target_are_merged_if_fewer_come_out(
    sizes: list[int], merged: list[list[int]], outputs: list[int]
) -> None:
    files = [("partition", size, number) for number, size in enumerate(sizes)]
    merges = plan_merges(files, 100)
    assert [list(merge.files) for merge in merges] == merged
    assert [merge.output_count for merge in merges] == outputs


def test_files_of_different_partitions_are_never_merged() -> None:
    assert plan_merges([("a", 1, 0), ("b", 1, 1)], 100) == []
