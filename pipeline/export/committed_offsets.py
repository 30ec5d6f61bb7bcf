"""The committed offsets of ordinary consumer groups, read from one broker and committed to another."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from barnabas.client.cluster import Cluster
from barnabas.client.coordinators import Coordinators
from barnabas.client.group_offsets import CommittedOffset as GroupOffset
from barnabas.client.group_offsets import GroupMetadata, commit_group_offsets, fetch_group_offsets
from barnabas.client.topic_partition import TopicPartition
from barnabas.pipeline.export.manifest import CommittedOffset


async def read_committed(cluster: Cluster, group_id: str, topics: Collection[str]) -> list[CommittedOffset]:
    """The group's committed offsets of these topics. Raises `BrokerError` and `BrokerUnavailableError`."""
    coordinators = Coordinators(cluster)
    try:
        committed = await fetch_group_offsets(coordinators, GroupMetadata(group_id))
    finally:
        coordinators.close()
    return [
        CommittedOffset(topic, partition, one.offset, one.metadata)
        for (topic, partition), one in sorted(committed.items())
        if topic in topics
    ]


async def commit(cluster: Cluster, group_id: str, offsets: Sequence[CommittedOffset]) -> None:
    """Commits for a group without members. Raises `BrokerError`."""
    coordinators = Coordinators(cluster)
    by_partition = {
        TopicPartition(one.topic, one.partition): GroupOffset(one.offset, one.metadata) for one in offsets
    }
    try:
        await commit_group_offsets(coordinators, GroupMetadata(group_id), by_partition)
    finally:
        coordinators.close()
