"""Reads the positions of share groups from a broker, and sets their start offsets at another (KIP-932).

Every broker reports the start offset of each partition. In Apache Kafka, records in flight above it are in
`__share_group_state`, and the share coordinator reports them to clients with the right to act for the
cluster: without ACLs, to all. Barnabas keeps them in its logs and does not report them; read them from its
data directory (`log_state`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Final, NamedTuple
from uuid import UUID

from kio.schema.alter_share_group_offsets.v0.request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kio.schema.describe_share_group_offsets.v1.request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.read_share_group_state.v0.request import (
    PartitionData,
    ReadShareGroupStateRequest,
    ReadStateData,
)
from kio.schema.read_share_group_state.v0.response import PartitionResult

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.errors import BrokerError
from barnabas.pipeline.export.manifest import (
    ACCEPTED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    InFlight,
    SharePosition,
)
from barnabas.pipeline.export.requests import (
    ask_at,
    ask_coordinator,
    check,
    find_share_coordinators,
    with_retries,
)
from barnabas.protocol.client.admin_apis import (
    ALTER_SHARE_GROUP_OFFSETS,
    DESCRIBE_SHARE_GROUP_OFFSETS,
    LIST_GROUPS,
    READ_SHARE_GROUP_STATE,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import SharePartitionKey
from barnabas.protocol.primitive import GroupId, TopicName, i32, i64

KEYS_MAX: Final = 1_000
"""The number of share-partitions in one request."""

SHARE: Final = ("share",)
ORDINARY: Final = ("consumer", "classic")

STATE_NAMES: Final = {0: AVAILABLE, 1: AVAILABLE, 2: ACCEPTED, 3: ARCHIVING, 4: ARCHIVED}
"""By KIP-932's numbers. An acquired record is available again when its lock ends."""


class _Start(NamedTuple):
    """The start offset of a share-partition, and the newest leader epoch in its state."""

    offset: int
    leader_epoch: int


async def list_groups(cluster: Cluster, types: tuple[str, ...]) -> list[str]:
    """The ids of all groups of these types, sorted: each broker lists those that it coordinates."""
    await with_retries(lambda: cluster.refresh(()))
    found: set[str] = set()
    for address in cluster.view.brokers.values():
        request = ListGroupsRequest(types_filter=types)
        response = await with_retries(partial(ask_at, cluster, address, LIST_GROUPS, request))
        check(response.error_code, None)
        found |= {group.group_id for group in response.groups}
    return sorted(found)


async def read_positions(cluster: Cluster, group_id: str, topics: Mapping[UUID, str]) -> list[SharePosition]:
    """The group's positions in these topics (names by id), by topic and partition.

    Partitions from which the group never fetched have no position. Raises `BrokerError`.
    """
    # A repetition repeats both requests, because the leader epoch may have changed.
    return await with_retries(partial(_positions, cluster, group_id, topics))


async def _positions(cluster: Cluster, group_id: str, topics: Mapping[UUID, str]) -> list[SharePosition]:
    starts = await _starts(cluster, group_id, topics)
    states = await _read_states(cluster, starts)
    positions = [
        _position(topics[key.topic_id], key.partition, start.offset, states.get(key))
        for key, start in starts.items()
    ]
    return sorted(positions, key=lambda position: (position.topic, position.partition))


def _position(topic: str, partition: int, start_offset: int, state: PartitionResult | None) -> SharePosition:
    if state is None or state.start_offset < 0:
        return SharePosition(topic, partition, start_offset)
    return SharePosition(topic, partition, state.start_offset, _in_flight(state))


async def alter_start_offsets(cluster: Cluster, group_id: str, starts: Mapping[tuple[str, int], int]) -> None:
    """Sets the start offsets of a group without members, by topic and partition."""
    by_topic: dict[str, list[AlterShareGroupOffsetsRequestPartition]] = {}
    for (topic, partition), start_offset in starts.items():
        by_topic.setdefault(topic, []).append(
            AlterShareGroupOffsetsRequestPartition(
                partition_index=i32(partition), start_offset=i64(start_offset)
            )
        )
    topics = tuple(
        AlterShareGroupOffsetsRequestTopic(topic_name=TopicName(name), partitions=tuple(partitions))
        for name, partitions in by_topic.items()
    )
    request = AlterShareGroupOffsetsRequest(group_id=GroupId(group_id), topics=topics)
    await with_retries(lambda: _alter(cluster, group_id, request))


async def _alter(cluster: Cluster, group_id: str, request: AlterShareGroupOffsetsRequest) -> None:
    response = await ask_coordinator(cluster, group_id, ALTER_SHARE_GROUP_OFFSETS, request)
    check(response.error_code, response.error_message or f"the offsets of group {group_id}")
    for topic in response.responses:
        for partition in topic.partitions:
            named = f"{topic.topic_name}-{partition.partition_index} of group {group_id}"
            check(partition.error_code, f"{named}: {partition.error_message}")


async def _starts(
    cluster: Cluster, group_id: str, topic_ids: Collection[UUID]
) -> dict[SharePartitionKey, _Start]:
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=GroupId(group_id), topics=None)
    request = DescribeShareGroupOffsetsRequest(groups=(asked,))
    response = await ask_coordinator(cluster, group_id, DESCRIBE_SHARE_GROUP_OFFSETS, request)
    starts: dict[SharePartitionKey, _Start] = {}
    for group in response.groups:
        check(group.error_code, group.error_message)
        for topic in group.topics:
            for partition in topic.partitions if topic.topic_id in topic_ids else ():
                check(partition.error_code, partition.error_message)
                if topic.topic_id is not None and partition.start_offset >= 0:
                    key = SharePartitionKey(group_id, topic.topic_id, partition.partition_index)
                    starts[key] = _Start(partition.start_offset, partition.leader_epoch)
    return starts


async def _read_states(
    cluster: Cluster, starts: Mapping[SharePartitionKey, _Start]
) -> dict[SharePartitionKey, PartitionResult]:
    """The share coordinators' state of these share-partitions; without those that they don't report."""
    if not starts or not await cluster.supports(READ_SHARE_GROUP_STATE):
        return {}
    found: dict[SharePartitionKey, PartitionResult] = {}
    keys = list(starts)
    for first in range(0, len(keys), KEYS_MAX):
        some = {key: starts[key].leader_epoch for key in keys[first : first + KEYS_MAX]}
        try:
            found |= await _ask_states(cluster, some)
        except BrokerError as error:
            if error.code is not ErrorCode.cluster_authorization_failed:
                raise
    return found


async def _ask_states(
    cluster: Cluster, leader_epochs: Mapping[SharePartitionKey, int]
) -> dict[SharePartitionKey, PartitionResult]:
    found: dict[SharePartitionKey, PartitionResult] = {}
    keys = list(leader_epochs)
    for address, of_address in (await find_share_coordinators(cluster, keys)).items():
        request = _states_request({key: leader_epochs[key] for key in of_address})
        response = await ask_at(cluster, address, READ_SHARE_GROUP_STATE, request)
        for result in response.results:
            for partition in result.partitions:
                check(partition.error_code, partition.error_message)
                assert result.topic_id is not None
                found[SharePartitionKey(keys[0].group_id, result.topic_id, partition.partition)] = partition
    return found


def _states_request(leader_epochs: Mapping[SharePartitionKey, int]) -> ReadShareGroupStateRequest:
    """For partitions of one group.

    The coordinator would store a newer leader epoch than its own: the epoch that it knows changes nothing.
    """
    by_topic: dict[UUID, list[PartitionData]] = {}
    for key, leader_epoch in leader_epochs.items():
        partition = PartitionData(partition=i32(key.partition), leader_epoch=i32(leader_epoch))
        by_topic.setdefault(key.topic_id, []).append(partition)
    topics = tuple(
        ReadStateData(topic_id=topic_id, partitions=tuple(partitions))
        for topic_id, partitions in by_topic.items()
    )
    (group_id,) = {key.group_id for key in leader_epochs}
    return ReadShareGroupStateRequest(group_id=group_id, topics=topics)


def _in_flight(state: PartitionResult) -> tuple[InFlight, ...]:
    return tuple(
        InFlight(
            max(batch.first_offset, state.start_offset),
            batch.last_offset,
            STATE_NAMES[batch.delivery_state],
            batch.delivery_count,
        )
        for batch in state.state_batches
        if batch.last_offset >= state.start_offset
    )
