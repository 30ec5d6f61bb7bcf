"""Plans a read: the ranges of offsets, their split into tasks, and the size of a micro-batch.

All results depend only on offsets and options, so a batch that Spark replays is split into the same tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from uuid import UUID

from barnabas.pipeline.reading import PartitionRanges
from barnabas.pipeline.topic_source.stream_offset import StreamOffset
from barnabas.protocol.identity import TopicIdPartition


def ranges_between(start: StreamOffset, end: StreamOffset) -> list[PartitionRanges]:
    """The ranges of a micro-batch: one for each partition with new offsets."""
    planned: list[PartitionRanges] = []
    for name, topic in sorted(end.topics.items()):
        for index, next_offset in sorted(topic.next_offsets.items()):
            partition = TopicIdPartition(topic.topic_id, index)
            first_offset = start.next_offset(name, partition)
            if first_offset < next_offset:
                planned.append(PartitionRanges(name, partition, ((first_offset, next_offset - 1, 0),)))
    return planned


def split(planned: Sequence[PartitionRanges], tasks_min: int) -> list[PartitionRanges]:
    """Cuts ranges so that there are about `tasks_min` of similar size; at least one task for each range."""
    total = sum(_count(ranges) for ranges in planned)
    tasks: list[PartitionRanges] = []
    for ranges in planned:
        pieces = max(1, round(_count(ranges) * tasks_min / total)) if len(planned) < tasks_min else 1
        tasks.extend(_cut(ranges, min(pieces, _count(ranges))))
    return tasks


def share(
    available: Mapping[TopicIdPartition, int], count_max: int, turn: int = 0
) -> dict[TopicIdPartition, int]:
    """The number of offsets of each partition in a micro-batch, with `count_max` together.

    In proportion to the available offsets, so that the partitions end together, and at least one. If there
    are more partitions than `count_max`, they take turns: `turn` is the number of offsets taken before.
    """
    total = sum(available.values())
    if total <= count_max:
        return dict(available)
    waiting = sorted((partition for partition, count in available.items() if count), key=_order)
    if count_max < len(waiting):
        first = turn % len(waiting)
        lucky = frozenset((waiting[first:] + waiting[:first])[:count_max])
        return {partition: int(partition in lucky) for partition in available}
    shares: dict[TopicIdPartition, int] = {}
    left_count, left_total = count_max, total
    for partition, count in sorted(available.items(), key=lambda pair: (pair[1], _order(pair[0]))):
        taken = min(count, left_count, max(1, left_count * count // left_total)) if count else 0
        shares[partition] = taken
        left_count -= taken
        left_total -= count
    return shares


def _order(partition: TopicIdPartition) -> tuple[UUID, int]:
    return partition.topic_id, partition.partition


def _count(ranges: PartitionRanges) -> int:
    return sum(last_offset + 1 - first_offset for first_offset, last_offset, _ in ranges.ranges)


def _cut(ranges: PartitionRanges, pieces: int) -> list[PartitionRanges]:
    ((first_offset, last_offset, delivery_count),) = ranges.ranges
    count = last_offset + 1 - first_offset
    bounds = [first_offset + count * index // pieces for index in range(pieces + 1)]
    return [ranges._replace(ranges=((begin, end - 1, delivery_count),)) for begin, end in pairwise(bounds)]
