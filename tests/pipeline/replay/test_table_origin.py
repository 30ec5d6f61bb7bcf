"""The column values in the names of a table's directories."""

from __future__ import annotations

import pytest

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.replay.table_origin import partition_value

FILE = "part-0.parquet"


@pytest.mark.parametrize(
    ("root", "uri", "value"),
    [
        ("file:///lake/t", "file:///lake/t/batch=1/topic=a/part=2", "a"),
        ("file:///lake/topic=above/t", "file:/lake/topic=above/t/topic=a", "a"),
        ("file:///lake/topic=a", "file:///lake/topic=a/topic=b%20c", "b c"),
        ("file:///lake/%C3%BC%20t", "file:/lake/ü%20t/topic=ü", "ü"),
        ("s3a://bucket/t", "s3a://bucket/t/topic=a%253Ab+%2525", "a:b+%"),
        ("file:///lake", "file:///lake/topic=a=b", "a=b"),
        ("file:///lake", "file:///lake/topic=__HIVE_DEFAULT_PARTITION__", None),
    ],
)
def test_only_directories_below_the_table_count(root: str, uri: str, value: str | None) -> None:
    assert partition_value("topic", f"{uri}/{FILE}", root) == value


def test_a_file_without_the_column_in_its_directories_is_refused() -> None:
    with pytest.raises(PipelineError, match="is in no directory topic="):
        partition_value("topic", f"file:///topic=a/t/part=1/{FILE}", "file:///topic=a/t")
    with pytest.raises(PipelineError, match="is not below file:///lake/t"):
        partition_value("topic", f"file:///other/topic=a/{FILE}", "file:///lake/t")
