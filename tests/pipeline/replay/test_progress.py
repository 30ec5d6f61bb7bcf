"""The progress of a replay belongs to one process at a time."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.replay.progress import ProgressFiles


@pytest.mark.parametrize("chunk_count", [1, 2, 3])
def test_a_process_finds_out_that_another_one_goes_on_even_if_it_is_behind(
    spark: SparkSession, tmp_path: Path, chunk_count: int
) -> None:
    faster, slower = (ProgressFiles(spark, str(tmp_path)) for _ in range(2))
    assert slower.done() == (0, 0)
    for number in (1, 2, 3):
        faster.reach(number, 10 * number)
    with pytest.raises(PipelineError, match="another process goes on with this replay"):
        slower.reach(chunk_count, 10)
    assert faster.done() == slower.done() == (3, 30)
    faster.reach(4, 40)
    assert faster.done() == (4, 40)
