"""The plan of a read: ranges, tasks, a micro-batch's share, and the offset that Spark stores."""

from __future__ import annotations

import json
from uuid import UUID

import pytest

from barnabas.client.cluster.topics import Topic
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.reading import PartitionRanges
from barnabas.pipeline.topic_source.planning import ranges_between, share, split
from barnabas.pipeline.topic_source.stream_offset import StreamOffset, parse_stream_offset, stream_offset
from barnabas.protocol.identity import TopicIdPartition

ORDERS, ANEW = UUID(int=1), UUID(int=2)


def partition(index: int, topic_id: UUID = ORDERS) -> TopicIdPartition:
    return TopicIdPartition(topic_id, index)


def offset(*next_offsets: int, topic_id: UUID = ORDERS) -> StreamOffset:
    """A stream over `orders` that has come so far in each partition."""
    topic = Topic("orders", topic_id, len(next_offsets))
    return stream_offset([topic], {partition(index, topic_id): one for index, one in enumerate(next_offsets)})


def planned(*ranges: tuple[int, int, int], topic_id: UUID = ORDERS) -> list[PartitionRanges]:
    """By partition, first and last offset."""
    return [
        PartitionRanges("orders", partition(index, topic_id), ((first, last, 0),))
        for index, first, last in ranges
    ]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (offset(5, 7), offset(9, 7), planned((0, 5, 8))),
        (offset(5), offset(5), []),
        (offset(5), offset(3), []),
        (offset(5), offset(5, 4), planned((1, 0, 3))),
        (StreamOffset({}), offset(2), planned((0, 0, 1))),
        (offset(5), offset(3, topic_id=ANEW), planned((0, 0, 2), topic_id=ANEW)),
        (offset(5), StreamOffset({}), []),
    ],
    ids=["further", "nowhere", "back", "a new partition", "a new topic", "made anew", "gone"],
)
def test_a_batch_has_the_records_between_two_offsets(
    start: StreamOffset, end: StreamOffset, expected: list[PartitionRanges]
) -> None:
    assert ranges_between(start, end) == expected


def test_an_offset_survives_the_checkpoint() -> None:
    original = offset(3, 2**40)
    assert parse_stream_offset(json.loads(json.dumps(original.to_json()))) == original


@pytest.mark.parametrize(
    "given", [{}, {"version": 2, "topics": {}}, {"version": 1, "topics": {"a": {"id": "x"}}}]
)
def test_a_checkpoint_of_something_else_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(PipelineError, match="not written by kafka-topic"):
        parse_stream_offset(given)


@pytest.mark.parametrize(
    ("ranges", "tasks_min", "expected"),
    [
        (planned((0, 0, 99)), 1, planned((0, 0, 99))),
        (planned((0, 0, 99)), 3, planned((0, 0, 32), (0, 33, 65), (0, 66, 99))),
        (planned((0, 0, 1)), 5, planned((0, 0, 0), (0, 1, 1))),
        (
            planned((0, 0, 89), (1, 0, 9)),
            4,
            planned((0, 0, 21), (0, 22, 44), (0, 45, 66), (0, 67, 89), (1, 0, 9)),
        ),
        (planned((0, 0, 9), (1, 0, 9)), 2, planned((0, 0, 9), (1, 0, 9))),
        ([], 4, []),
    ],
)
def test_ranges_are_cut_into_tasks_of_about_one_size(
    ranges: list[PartitionRanges], tasks_min: int, expected: list[PartitionRanges]
) -> None:
    assert split(ranges, tasks_min) == expected


@pytest.mark.parametrize(
    ("available", "count_max", "expected"),
    [
        ([10, 20], 30, [10, 20]),
        ([10, 20], 15, [5, 10]),
        ([1000, 1], 10, [9, 1]),
        ([5, 5, 5], 2, [1, 1, 0]),
        ([0, 8], 4, [0, 4]),
        ([0, 0], 4, [0, 0]),
    ],
)
def test_a_micro_batch_takes_a_share_of_each_partition(
    available: list[int], count_max: int, expected: list[int]
) -> None:
    shares = share({partition(index): count for index, count in enumerate(available)}, count_max)
    assert [shares[partition(index)] for index in range(len(available))] == expected
    assert sum(shares.values()) <= count_max


def test_partitions_take_turns_where_there_are_more_of_them_than_offsets_to_take() -> None:
    reached = [0, 0, 0, 0]
    for _ in range(4):
        # The first is written to all the time, and never has more than the others.
        available = {partition(index): 1 if index == 0 else 100 for index in range(4)}
        shares = share(available, 3, turn=sum(reached))
        assert sum(shares.values()) == 3
        reached = [one + shares[partition(index)] for index, one in enumerate(reached)]
    assert reached == [3, 3, 3, 3]
