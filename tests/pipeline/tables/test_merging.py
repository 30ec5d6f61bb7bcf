"""Which small files of a table are merged."""

import pytest

from barnabas.pipeline.tables.merging import plan_merges


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
