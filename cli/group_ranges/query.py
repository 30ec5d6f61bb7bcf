"""Asks a broker with the feature `individual.commit` for the offsets, ranges and members of a group.

The answer is of several requests, so a group that changes meanwhile may have offsets of one moment and
members of another. Transactions under way are not waited for: their ranges are not committed yet.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.cli.group_ranges.report import GroupReport, PartitionReport, Sharer
from barnabas.cli.target import Target
from barnabas.client.admin.group_positions import Bounds
from barnabas.client.cluster.coordinators import Coordinators
from barnabas.client.cluster.topics import EARLIEST, LATEST, Topics
from barnabas.protocol.client.individual_apis import DESCRIBE_SHARERS, FETCH_RANGES
from barnabas.protocol.committed_ranges import OffsetRange
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.extended.consumer_group_describe_v1 import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from barnabas.protocol.extended.offset_fetch_v10 import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from barnabas.protocol.extended.packed import unpack_ranges, unpack_shares
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.primitive import GroupId
from barnabas.protocol.record_keys.hash_range import ALL_HASHES

_NOT_A_CONSUMER_GROUP: Final = "Simple"
"""The state of a group without members of the new protocol, as Kafka calls groups that only have offsets."""


class _Committed(NamedTuple):
    offset: int
    ranges: list[OffsetRange]


async def ask(target: Target, group_id: str, topic_names: Sequence[str]) -> GroupReport | None:
    """The group, with the partitions of these topics, or of all; None if it has neither members nor offsets.

    Raises `ConsumerError`: no broker, a broker without the feature, an unknown topic.
    """
    async with target.administer() as admin:
        described = await _describe(admin.coordinators, group_id)
        committed = await _committed(admin.coordinators, group_id)
        if described is None and not committed:
            return None
        return await _report(admin.topics, topic_names, group_id, described, committed)


async def _describe(coordinators: Coordinators, group_id: str) -> DescribedGroup | None:
    """None if there is no group of the new protocol with this id."""
    request = ConsumerGroupDescribeRequest(
        group_ids=(GroupId(group_id),), include_authorized_operations=False, wants_shares=True
    )
    response = await coordinators.ask(group_id, DESCRIBE_SHARERS, request, _describe_error)
    (group,) = response.groups
    return group if group.error_code is ErrorCode.none else None


async def _committed(coordinators: Coordinators, group_id: str) -> dict[TopicIdPartition, _Committed]:
    asked = OffsetFetchRequestGroup(group_id=GroupId(group_id), topics=None, wants_ranges=True)
    request = OffsetFetchRequest(groups=(asked,), require_stable=False)
    response = await coordinators.ask(group_id, FETCH_RANGES, request, _fetch_error)
    return {
        TopicIdPartition(topic.topic_id, partition.partition_index): _Committed(
            partition.committed_offset, unpack_ranges(partition.ranges or b"")
        )
        for group in response.groups
        for topic in group.topics
        for partition in topic.partitions
        if topic.topic_id is not None and partition.committed_offset >= 0
    }


async def _report(
    topics: Topics,
    topic_names: Sequence[str],
    group_id: str,
    described: DescribedGroup | None,
    committed: Mapping[TopicIdPartition, _Committed],
) -> GroupReport:
    found = await topics.find(topic_names) if topic_names else await topics.find_all()
    names = {topic.topic_id: topic.name for topic in found}
    sharers: dict[TopicIdPartition, list[Sharer]] = defaultdict(list)
    for partition, sharer in _sharers(described):
        sharers[partition].append(sharer)
    partitions = [partition for partition in {*committed, *sharers} if partition.topic_id in names]
    starts = await topics.offsets(partitions, EARLIEST)
    ends = await topics.offsets(partitions, LATEST)
    reports = [
        PartitionReport(
            names[partition.topic_id],
            partition.partition,
            committed[partition].offset if partition in committed else None,
            Bounds(starts[partition] or 0, ends[partition] or 0),
            committed[partition].ranges if partition in committed else (),
            sorted(sharers[partition], key=lambda sharer: sharer.hashes),
        )
        for partition in partitions
    ]
    reports.sort(key=lambda report: (report.topic, report.partition))
    state = _NOT_A_CONSUMER_GROUP if described is None else described.group_state
    return GroupReport(group_id, state, reports)


def _sharers(described: DescribedGroup | None) -> Iterator[tuple[TopicIdPartition, Sharer]]:
    """The members by the partitions that they have at present."""
    for member in described.members if described is not None else ():
        for topic in member.assignment.topic_partitions:
            if topic.topic_id is None:
                continue
            shares = unpack_shares(topic.hash_ranges or b"")
            for index in topic.partitions:
                hashes = shares.get(index, ALL_HASHES)
                sharer = Sharer(member.member_id, member.client_id, member.client_host, hashes)
                yield TopicIdPartition(topic.topic_id, index), sharer


def _describe_error(response: ConsumerGroupDescribeResponse) -> ErrorCode:
    (group,) = response.groups
    is_missing = group.error_code is ErrorCode.group_id_not_found
    return ErrorCode.none if is_missing else group.error_code


def _fetch_error(response: OffsetFetchResponse) -> ErrorCode:
    (group,) = response.groups
    return group.error_code
