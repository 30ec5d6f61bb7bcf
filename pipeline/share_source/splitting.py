"""Splits a batch's ranges into tasks with similar numbers of offsets. Pure.

Ranges keep their order, so a task reads few partitions and few parts of a log. There is one task for each
partition while there are free cores. A task has a cost of some 40 ms if Spark talks to its workers over TCP,
so only large batches get more tasks than cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.pipeline.share_source.offset import ShareOffset
from barnabas.pipeline.share_source.ranges import AcquiredRange, cut_front, offset_count
from barnabas.protocol.identity import TopicIdPartition

TASK_RECORDS_MIN: Final = 50_000
"""Offsets that are worth a task that waits for a core, unless the option `minPartitions` asks for more."""
FREE_TASK_RECORDS_MIN: Final = 2_000
"""Offsets that are worth a task for which a core is free."""
TASKS_USUAL_MAX: Final = 32
"""Tasks of a batch, unless there are many records or `minPartitions` asks for more."""


class Piece(NamedTuple):
    """The ranges of one partition that a task reads."""

    topic: str
    partition: TopicIdPartition
    ranges: Sequence[AcquiredRange]
    """Ascending and disjoint."""


def split(batch: ShareOffset, *, cores: int, min_task_count: int, task_offsets_max: int) -> list[list[Piece]]:
    """The tasks of a batch, each with the pieces that it reads; none if the batch is empty.

    `cores` is the number of tasks that Spark runs at the same time.
    """
    total = sum(map(offset_count, batch.batch.values()))
    if not total:
        return []
    worth_count = max(-(-total // TASK_RECORDS_MIN), min(cores, -(-total // FREE_TASK_RECORDS_MIN)))
    usual_count = min(len(batch.batch), TASKS_USUAL_MAX, worth_count)
    task_count = max(usual_count, min_task_count, -(-total // task_offsets_max))
    return _deal(batch, -(-total // task_count))


def _deal(batch: ShareOffset, task_offsets: int) -> list[list[Piece]]:
    tasks: list[list[Piece]] = [[]]
    room = task_offsets
    for partition, ranges in sorted(batch.batch.items()):
        rest: list[AcquiredRange] = list(ranges)
        while rest:
            if not room:
                tasks.append([])
                room = task_offsets
            taken, rest = cut_front(rest, room)
            tasks[-1].append(Piece(batch.topics[partition.topic_id], partition, tuple(taken)))
            room -= offset_count(taken)
    return tasks
