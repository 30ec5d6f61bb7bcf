"""How a batch becomes tasks."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.pipeline.share_source.offset import ShareOffset
from barnabas.pipeline.share_source.ranges import AcquiredRange, offset_count
from barnabas.pipeline.share_source.splitting import TASK_RECORDS_MIN, split
from barnabas.protocol.identity import TopicIdPartition

TOPIC = UUID(int=1)


def batch_of(*counts: int) -> ShareOffset:
    """A batch with these numbers of offsets in partitions 0, 1, ..."""
    ranges = {
        TopicIdPartition(TOPIC, index): [AcquiredRange(100, 99 + count, 1)]
        for index, count in enumerate(counts)
        if count
    }
    return ShareOffset(group_id="g", member_id="m", topics={TOPIC: "orders"}, batch=ranges)


@pytest.mark.parametrize(
    ("counts", "min_task_count", "task_offsets_max", "sizes"),
    [
        pytest.param([], 1, 100, [], id="nothing"),
        pytest.param([10], 1, 100, [10], id="a little"),
        pytest.param([10, 10], 1, 100, [20], id="a little of two partitions is one task"),
        pytest.param([TASK_RECORDS_MIN] * 2, 1, 10**6, [TASK_RECORDS_MIN] * 2, id="a task a partition"),
        pytest.param([10], 3, 100, [4, 4, 2], id="more tasks, if they are asked for"),
        pytest.param([250], 1, 100, [84, 84, 82], id="as large as they may be, and even"),
        pytest.param([3], 10, 100, [1, 1, 1], id="no empty tasks"),
    ],
)
def test_tasks_are_as_large_as_they_should_be(
    counts: list[int], min_task_count: int, task_offsets_max: int, sizes: list[int]
) -> None:
    tasks = split(
        batch_of(*counts), cores=1, min_task_count=min_task_count, task_offsets_max=task_offsets_max
    )
    assert [sum(offset_count(piece.ranges) for piece in pieces) for pieces in tasks] == sizes


@pytest.mark.parametrize(
    ("cores", "sizes"), [(1, [8_000]), (2, [4_000, 4_000]), (4, [2_000] * 4), (100, [2_000] * 4)]
)
def test_there_is_a_task_for_each_partition_while_cores_are_free(cores: int, sizes: list[int]) -> None:
    tasks = split(batch_of(*[2_000] * 4), cores=cores, min_task_count=1, task_offsets_max=100_000)
    assert [sum(offset_count(piece.ranges) for piece in pieces) for pieces in tasks] == sizes


@given(st.lists(st.integers(0, 5_000), max_size=6), st.integers(1, 12), st.integers(1, 4_000))
def test_tasks_hold_everything_once(counts: list[int], min_task_count: int, task_offsets_max: int) -> None:
    batch = batch_of(*counts)
    tasks = split(batch, cores=2, min_task_count=min_task_count, task_offsets_max=task_offsets_max)
    found: dict[TopicIdPartition, int] = {}
    for pieces in tasks:
        assert 0 < sum(offset_count(piece.ranges) for piece in pieces) <= task_offsets_max
        for piece in pieces:
            found[piece.partition] = found.get(piece.partition, 0) + offset_count(piece.ranges)
    assert found == {partition: offset_count(ranges) for partition, ranges in batch.batch.items()}
