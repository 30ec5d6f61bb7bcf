"""The file with the highest number counts, and a number is never used twice."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from barnabas.pipeline.tables.hadoop_files import HadoopFiles
from barnabas.pipeline.tables.numbered_files import NumberedFiles


def test_of_two_writers_of_a_number_one_succeeds(spark: SparkSession, tmp_path: Path) -> None:
    numbered = NumberedFiles(HadoopFiles(spark, str(tmp_path)), "numbers", kept_count=2)
    assert numbered.newest() is None
    assert [numbered.add(number, text) for number, text in ((0, "a"), (0, "b"), (1, "c"))] == [
        True,
        False,
        True,
    ]
    assert numbered.newest() == (1, "c")


@pytest.mark.parametrize("kept_count", [1, 3])
def test_a_number_whose_file_was_removed_is_not_used_again(
    spark: SparkSession, tmp_path: Path, kept_count: int
) -> None:
    numbered = NumberedFiles(HadoopFiles(spark, str(tmp_path)), "numbers", kept_count=kept_count)
    for number in range(kept_count + 1):
        assert numbered.add(number, "first")
    assert not numbered.add(0, "second")
    assert numbered.numbers() == list(range(1, kept_count + 1))
    assert numbered.newest() == (kept_count, "first")
