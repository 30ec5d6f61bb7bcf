"""Wrong options of tables and of compactions are refused; the error names the field."""

from typing import Any

import pytest

from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.tables import CompactOptions, TableOptions
from barnabas.pipeline.tables.partitioning import PartitionColumn, parse_partitioning


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
def test_a_wrong_option_of_a_table_is_named(given: Any, option: str) -> None:
    with pytest.raises(OptionError) as caught:
        TableOptions(**given)
    assert caught.value.option == option


@pytest.mark.parametrize("target_bytes", [0, 1023, 2**32 + 1])
def test_a_target_outside_the_limits_is_refused(target_bytes: int) -> None:
    with pytest.raises(OptionError, match="target_bytes"):
        CompactOptions(table=TableOptions(location="lake"), target_bytes=target_bytes)


def test_partition_columns_are_names_or_expressions() -> None:
    assert parse_partitioning(["date", " hour = hour(timestamp) ", "same=a=b"]) == (
        PartitionColumn("date"),
        PartitionColumn("hour", "hour(timestamp)"),
        PartitionColumn("same", "a=b"),
    )
