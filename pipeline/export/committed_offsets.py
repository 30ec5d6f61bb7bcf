"""The committed offsets of ordinary consumer groups, read from one broker and committed to another.

A broker with the feature `individual.commit` also has the ranges of offsets beyond them that members have
committed individually (docs/protocol.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.coordinators import Coordinators
from barnabas.client.cluster.topics import Topic
from barnabas.client.group.offsets import CommittedOffset as GroupOffset
from barnabas.client.group.offsets import GroupMetadata, commit_group_offsets, fetch_group_offsets
from barnabas.client.group.ranges import (
    REQUEST_RANGES_MAX,
    RangesToCommit,
    commit_group_ranges,
    fetch_group_ranges,
)
from barnabas.client.topic_partition import TopicPartition
from barnabas.pipeline.export.manifest import CommittedOffset, CommittedRange
from barnabas.protocol.client.individual_apis import FETCH_RANGES
from barnabas.protocol.committed_ranges import CommittedRanges, OffsetRange
from barnabas.protocol.identity import TopicIdPartition


async def read_committed(cluster: Cluster, group_id: str, topics: Iterable[Topic]) -> list[CommittedOffset]:
    """The group's committed offsets of these topics. Raises `BrokerError` and `BrokerUnavailableError`."""
    ids = {topic.name: topic.topic_id for topic in topics}
    group = GroupMetadata(group_id)
    with closing(Coordinators(cluster)) as coordinators:
        committed = {
            TopicIdPartition(ids[topic], partition): _exported(topic, partition, offset)
            for (topic, partition), offset in sorted((await fetch_group_offsets(coordinators, group)).items())
            if topic in ids
        }
        if not committed or not await cluster.supports(FETCH_RANGES):
            return list(committed.values())
        ranges = await fetch_group_ranges(coordinators, group, committed)
    return [
        _with_ranges(offset, ranges[partition]) if partition in ranges else offset
        for partition, offset in committed.items()
    ]


async def commit(cluster: Cluster, group_id: str, offsets: Sequence[CommittedOffset]) -> None:
    """Commits the offsets for a group without members, which takes all ranges out of force. `BrokerError`."""
    by_partition = {
        TopicPartition(committed.topic, committed.partition): GroupOffset(
            committed.offset, committed.metadata
        )
        for committed in offsets
    }
    with closing(Coordinators(cluster)) as coordinators:
        await commit_group_offsets(coordinators, GroupMetadata(group_id), by_partition)


async def commit_ranges(
    cluster: Cluster, group_id: str, ranges: Mapping[TopicIdPartition, Sequence[CommittedRange]]
) -> None:
    """Commits ranges beyond the offsets of a group without members.

    Raises `BrokerError`, also for a broker that keeps no ranges, or not as many.
    """
    with closing(Coordinators(cluster)) as coordinators:
        for partition, of_partition in ranges.items():
            bounds = [
                OffsetRange(committed_range.first_offset, committed_range.last_offset)
                for committed_range in of_partition
            ]
            for start in range(0, len(bounds), REQUEST_RANGES_MAX):
                some = {partition: RangesToCommit(bounds[start : start + REQUEST_RANGES_MAX])}
                refused = await commit_group_ranges(coordinators, GroupMetadata(group_id), some)
                for error in refused.values():
                    raise error


def _exported(topic: str, partition: int, committed: GroupOffset) -> CommittedOffset:
    return CommittedOffset(topic, partition, committed.offset, committed.metadata)


def _with_ranges(committed: CommittedOffset, found: CommittedRanges) -> CommittedOffset:
    """The offset and the ranges of one moment, which is later than that of `committed`."""
    ranges = tuple(CommittedRange(*bounds) for bounds in found)
    return CommittedOffset(
        committed.topic, committed.partition, found.stable_offset + 1, committed.metadata, ranges
    )
