"""The ranges of offsets that a group has committed individually, and commits of ranges.

Only for brokers with the feature `individual.commit` (docs/protocol.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from kio.schema.offset_fetch.v10.request import OffsetFetchRequestTopics

from barnabas.client.cluster.coordinators import Coordinators
from barnabas.client.errors import BrokerError, broker_error
from barnabas.client.group.offsets import GroupMetadata
from barnabas.client.topic_partition import TopicPartition
from barnabas.protocol.client.individual_apis import COMMIT_RANGES, FETCH_RANGES
from barnabas.protocol.committed_ranges import CommittedRanges, OffsetRange
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.extended.offset_commit_v10 import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
)
from barnabas.protocol.extended.offset_fetch_v10 import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponsePartitions,
)
from barnabas.protocol.extended.packed import pack_ranges, unpack_ranges
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.primitive import GroupId, i32, i64

REQUEST_RANGES_MAX: Final = 60_000
"""The most ranges in one request: 16 bytes each, so that it stays below 1 MB."""

_NO_POSITION: Final = -1

TOO_MANY_RANGES: Final = ErrorCode.invalid_commit_offset_size
"""The broker holds too many ranges of a partition. Other errors concern the member or the coordinator."""


class RangesToCommit(NamedTuple):
    """A commit in one partition."""

    ranges: Sequence[OffsetRange] = ()
    begins_at: int | None = None
    """Where the group begins if it has committed no offset; only the first such commit counts."""


class TakenRanges(dict[TopicPartition, list[OffsetRange]]):
    """Ranges to commit in a transaction, and the epoch of the member at the time when it had the partitions.

    With a later epoch, a commit for a share that the member has lost since would count for the one that has
    replaced it.
    """

    def __init__(self, ranges: Mapping[TopicPartition, list[OffsetRange]], member_epoch: int) -> None:
        super().__init__(ranges)
        self.member_epoch = member_epoch


async def fetch_group_ranges(
    coordinators: Coordinators, group: GroupMetadata, partitions: Iterable[TopicIdPartition]
) -> dict[TopicIdPartition, CommittedRanges]:
    """By partition, the offsets that the group has committed; without partitions that have none.

    Waits for transactions of former members that are about to commit offsets. Raises `BrokerError`, and
    `BrokerUnavailableError` for a temporary error that lasts too long.
    """
    asked = OffsetFetchRequestGroup(
        group_id=GroupId(group.group_id),
        member_id=group.member_id or None,
        member_epoch=i32(group.member_epoch),
        topics=tuple(
            OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=tuple(map(i32, indexes)))
            for topic_id, indexes in _indexes_by_id(partitions).items()
        ),
        wants_ranges=True,
    )
    request = OffsetFetchRequest(groups=(asked,), require_stable=True)
    response = await coordinators.ask(group.group_id, FETCH_RANGES, request, _fetch_error)
    return {
        partition: CommittedRanges(result.committed_offset - 1, unpack_ranges(result.ranges or b""))
        for partition, result in _fetched(response)
        if result.committed_offset >= 0
    }


async def commit_group_ranges(
    coordinators: Coordinators, group: GroupMetadata, commits: Mapping[TopicIdPartition, RangesToCommit]
) -> dict[TopicIdPartition, BrokerError]:
    """Commit ranges, at most REQUEST_RANGES_MAX together. Returns the partitions that were refused.

    Raises the errors of `fetch_group_ranges`; then nothing was committed, or the result is unknown.
    """
    request = OffsetCommitRequest(
        group_id=GroupId(group.group_id),
        generation_id_or_member_epoch=i32(group.member_epoch),
        member_id=group.member_id,
        group_instance_id=group.instance_id,
        topics=tuple(
            OffsetCommitRequestTopic(
                topic_id=topic_id,
                partitions=tuple(
                    OffsetCommitRequestPartition(
                        partition_index=i32(index),
                        committed_offset=i64(_NO_POSITION if begins_at is None else begins_at),
                        committed_metadata="",
                        ranges=pack_ranges(ranges),
                    )
                    for index, (ranges, begins_at) in (
                        (index, commits[TopicIdPartition(topic_id, index)]) for index in indexes
                    )
                ),
            )
            for topic_id, indexes in _indexes_by_id(commits).items()
        ),
    )
    response = await coordinators.ask(group.group_id, COMMIT_RANGES, request, _commit_error)
    return {
        partition: broker_error(result.error_code, result.error_message)
        for partition, result in _committed(response)
        if result.error_code is TOO_MANY_RANGES
    }


def _indexes_by_id(partitions: Iterable[TopicIdPartition]) -> dict[UUID, list[int]]:
    by_topic: dict[UUID, list[int]] = {}
    for topic_id, index in sorted(partitions):
        by_topic.setdefault(topic_id, []).append(index)
    return by_topic


def _committed(
    response: OffsetCommitResponse,
) -> Iterator[tuple[TopicIdPartition, OffsetCommitResponsePartition]]:
    for topic in response.topics:
        for result in topic.partitions:
            if topic.topic_id is not None:
                yield TopicIdPartition(topic.topic_id, result.partition_index), result


def _fetched(
    response: OffsetFetchResponse,
) -> Iterator[tuple[TopicIdPartition, OffsetFetchResponsePartitions]]:
    for group in response.groups:
        for topic in group.topics:
            for result in topic.partitions:
                if topic.topic_id is not None:
                    yield TopicIdPartition(topic.topic_id, result.partition_index), result


def _commit_error(response: OffsetCommitResponse) -> ErrorCode:
    codes = (partition.error_code for topic in response.topics for partition in topic.partitions)
    return _first_error(code for code in codes if code is not TOO_MANY_RANGES)


def _fetch_error(response: OffsetFetchResponse) -> ErrorCode:
    of_group = _first_error(group.error_code for group in response.groups)
    if of_group is not ErrorCode.none:
        return of_group
    return _first_error(result.error_code for _, result in _fetched(response))


def _first_error(codes: Iterable[ErrorCode]) -> ErrorCode:
    """NONE if there is no other code."""
    return next((code for code in codes if code is not ErrorCode.none), ErrorCode.none)
