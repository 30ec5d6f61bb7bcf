"""Finds the ranges that a group has committed; a group without any begins at a position that it commits.

The coordinator accepts only the first such position. Then all members ask for it, so that two consumers that
start at the same time begin at the same offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic

from barnabas.client.cluster.coordinators import Coordinators
from barnabas.client.cluster.topics import Isolation, Topics
from barnabas.client.consume.assignment import AssignedPartition
from barnabas.client.consume.individual_progress import IndividualProgress
from barnabas.client.consume.offset_commits import OffsetCommits
from barnabas.client.consume.range_commits import RangeCommits
from barnabas.client.group.ranges import fetch_group_ranges
from barnabas.client.record_content import KeyT, ValueT
from barnabas.protocol.committed_ranges import CommittedRanges
from barnabas.protocol.identity import TopicIdPartition


class GroupBeginnings(Generic[KeyT, ValueT]):
    """For partitions whose offsets are committed individually."""

    def __init__(
        self,
        coordinators: Coordinators,
        topics: Topics,
        commits: OffsetCommits[KeyT, ValueT],
        range_commits: RangeCommits[KeyT, ValueT],
        isolation: Isolation,
    ) -> None:
        """`coordinators` and `topics` should give up at the first error."""
        self._coordinators = coordinators
        self._topics = topics
        self._commits = commits
        self._range_commits = range_commits
        self._isolation = isolation

    async def find(
        self, wanting: Sequence[AssignedPartition[KeyT, ValueT]]
    ) -> list[AssignedPartition[KeyT, ValueT]]:
        """Ask for the ranges of these partitions. Returns those without a committed offset.

        Raises `BrokerError` and `BrokerUnavailableError`.
        """
        generations = [partition.generation for partition in wanting]
        names = [partition.ownership.partition for partition in wanting]
        found = await fetch_group_ranges(self._coordinators, self._commits.reader_metadata, names)
        without: list[AssignedPartition[KeyT, ValueT]] = []
        for partition, generation in zip(wanting, generations, strict=True):
            if (
                partition.generation != generation
                or partition.individual is None
                or not partition.needs_ranges
            ):
                continue
            committed = found.get(partition.ownership.partition)
            if committed is None:
                without.append(partition)
            else:
                _begin(partition, partition.individual, committed)
        return without

    async def begin(self, wanting: Iterable[AssignedPartition[KeyT, ValueT]], reset_to: int) -> None:
        """The group begins where the application has sought to, or at EARLIEST or LATEST."""
        positions: dict[TopicIdPartition, int] = {}
        by_topic: dict[str, list[TopicIdPartition]] = {}
        for partition in wanting:
            if partition.progress.position is not None:
                positions[partition.ownership.partition] = partition.progress.position
            else:
                by_topic.setdefault(partition.name.topic, []).append(partition.ownership.partition)
        for topic, partitions in by_topic.items():
            await self._topics.find([topic])
            found = await self._topics.offsets(partitions, reset_to, self._isolation)
            positions.update((partition, found[partition] or 0) for partition in partitions)
        await self._range_commits.begin(positions)


def _begin(
    partition: AssignedPartition[KeyT, ValueT], individual: IndividualProgress, committed: CommittedRanges
) -> None:
    position = individual.begin(committed)
    if partition.fetch_offset is None and partition.reset_to is None:
        partition.seek(position)
