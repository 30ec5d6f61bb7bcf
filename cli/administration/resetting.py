"""`barnabas groups reset`: moves an empty group to other offsets, or shows the offsets that it would get."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from time import time_ns
from typing import Final, NamedTuple

from barnabas.cli.administration.groups import find_groups, refuse_members
from barnabas.cli.printing import Printer
from barnabas.cli.target import NotFoundError, Target
from barnabas.client.admin.connection import AdminConnection
from barnabas.client.admin.group_positions import (
    Bounds,
    GroupPosition,
    fetch_bounds,
    fetch_group_positions,
    fetch_offsets_at,
    set_group_positions,
)
from barnabas.client.admin.groups import describe_group
from barnabas.client.topic_partition import TopicPartition

_COLUMNS: Final = {
    "topic": "TOPIC",
    "partition": "PARTITION",
    "before": "BEFORE",
    "offset": "OFFSET",
    "lag": "LAG",
}
_NS_PER_MS: Final = 1_000_000


class Goal(NamedTuple):
    """The new position of each partition. Exactly one field is set."""

    to_earliest: bool = False
    to_latest: bool = False
    to_offset: int | None = None
    """Moved to the start or the end of a log that does not hold it."""
    to_time_ms: int | None = None
    """The first record that is not older; the end if there is none."""
    by_duration_ms: int | None = None
    """The first record that is not older than this."""
    shift_by: int | None = None
    """Forwards from the present position, or backwards if it is negative."""


class Moved(NamedTuple):
    """The change of one partition."""

    before: int | None
    after: int
    bounds: Bounds


async def reset(
    target: Target,
    printer: Printer,
    group_id: str,
    topics: Sequence[tuple[str, int | None]],
    goal: Goal,
    *,
    dry_run: bool,
    wall_ms: Callable[[], int] = lambda: time_ns() // _NS_PER_MS,
) -> None:
    """Move the group in these topics or partitions, or in all that it reads, and print the new offsets.

    Raises `ConsumerError`, `NotFoundError` if there is no such group or it reads none of the partitions, and
    `RefusedError` if the group has members.
    """
    async with target.administer() as admin:
        (listed,) = await find_groups(admin, [group_id])
        if not dry_run:
            refuse_members(await describe_group(admin, listed), "reset")
        positions = await fetch_group_positions(admin, group_id, listed.type)
        wanted = await _partitions(admin, positions, topics)
        if not wanted:
            raise NotFoundError(f"The group {group_id} has no offsets; name a topic with --topic")
        moved = await _plan(admin, positions, wanted, goal, wall_ms)
        if not dry_run:
            offsets = {partition: change.after for partition, change in moved.items()}
            await set_group_positions(admin, group_id, listed.type, offsets)
    _print(printer, group_id, moved, dry_run=dry_run)


async def _partitions(
    admin: AdminConnection,
    positions: Collection[TopicPartition],
    topics: Sequence[tuple[str, int | None]],
) -> list[TopicPartition]:
    """The partitions to move, sorted. Raises `UnknownTopicError` and `NotFoundError`."""
    if not topics:
        return sorted(positions)
    counts = {
        topic.name: topic.partition_count for topic in await admin.topics.find([name for name, _ in topics])
    }
    for name, partition in topics:
        if partition is not None and partition >= counts[name]:
            raise NotFoundError(f"{name} has no partition {partition}; its last one is {counts[name] - 1}")
    return sorted(
        {
            TopicPartition(name, index)
            for name, partition in topics
            for index in (range(counts[name]) if partition is None else [partition])
        }
    )


async def _plan(
    admin: AdminConnection,
    positions: Mapping[TopicPartition, GroupPosition],
    wanted: Sequence[TopicPartition],
    goal: Goal,
    wall_ms: Callable[[], int],
) -> dict[TopicPartition, Moved]:
    bounds = await fetch_bounds(admin, wanted)
    at_ms = goal.to_time_ms
    if goal.by_duration_ms is not None:
        at_ms = wall_ms() - goal.by_duration_ms
    at_time = {} if at_ms is None else await fetch_offsets_at(admin, wanted, at_ms)
    moved: dict[TopicPartition, Moved] = {}
    for partition in wanted:
        before = positions[partition].offset if partition in positions else None
        bound = bounds[partition]
        after = _after(goal, bound, before, at_time.get(partition) if at_ms is not None else None)
        moved[partition] = Moved(before, min(max(after, bound.start_offset), bound.end_offset), bound)
    return moved


def _after(goal: Goal, bounds: Bounds, before: int | None, at_time: int | None) -> int:
    """The new offset, which may lie outside of the log."""
    if goal.to_earliest:
        return bounds.start_offset
    if goal.to_offset is not None:
        return goal.to_offset
    if goal.shift_by is not None:
        return (bounds.start_offset if before is None else before) + goal.shift_by
    return bounds.end_offset if at_time is None else at_time


def _print(printer: Printer, group_id: str, moved: Mapping[TopicPartition, Moved], *, dry_run: bool) -> None:
    rows = [
        {
            "type": "would_reset" if dry_run else "reset",
            "group": group_id,
            "topic": partition.topic,
            "partition": partition.partition,
            "before": change.before,
            "offset": change.after,
            "lag": change.bounds.lag_from(change.after),
        }
        for partition, change in moved.items()
    ]
    printer.table(rows, _COLUMNS)
    if dry_run:
        printer.text("  Nothing was changed (--dry-run).")
