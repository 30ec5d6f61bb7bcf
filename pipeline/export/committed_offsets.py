"""The committed offsets of ordinary consumer groups, read from one broker and committed to another."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kio.schema.offset_commit.v9.request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

from barnabas.client.cluster import Cluster
from barnabas.client.coordinators import Coordinators
from barnabas.client.group_offsets import fetch_group_offsets
from barnabas.pipeline.export.asking import ask_coordinator, check, patiently
from barnabas.pipeline.export.manifest import CommittedOffset
from barnabas.protocol.client.admin_apis import OFFSET_COMMIT
from barnabas.protocol.primitive import GroupId, TopicName, i32, i64


async def read_committed(cluster: Cluster, group_id: str, topics: Collection[str]) -> list[CommittedOffset]:
    """The group's committed offsets of these topics. Raises `BrokerError` and `BrokerUnavailableError`."""
    coordinators = Coordinators(cluster)
    try:
        committed = await fetch_group_offsets(coordinators, group_id)
    finally:
        coordinators.close()
    return [
        CommittedOffset(topic, partition, one.offset, one.metadata)
        for (topic, partition), one in sorted(committed.items())
        if topic in topics
    ]


async def commit(cluster: Cluster, group_id: str, offsets: Sequence[CommittedOffset]) -> None:
    """Commits for a group without members. Raises `BrokerError`."""
    by_topic: dict[str, list[OffsetCommitRequestPartition]] = {}
    for one in offsets:
        by_topic.setdefault(one.topic, []).append(
            OffsetCommitRequestPartition(
                partition_index=i32(one.partition),
                committed_offset=i64(one.offset),
                committed_metadata=one.metadata,
            )
        )
    topics = tuple(
        OffsetCommitRequestTopic(name=TopicName(name), partitions=tuple(partitions))
        for name, partitions in by_topic.items()
    )
    request = OffsetCommitRequest(group_id=GroupId(group_id), member_id="", topics=topics)
    await patiently(lambda: _commit(cluster, group_id, request))


async def _commit(cluster: Cluster, group_id: str, request: OffsetCommitRequest) -> None:
    response = await ask_coordinator(cluster, group_id, OFFSET_COMMIT, request)
    for topic in response.topics:
        for one in topic.partitions:
            check(one.error_code, f"{topic.name}-{one.partition_index} of group {group_id}")
