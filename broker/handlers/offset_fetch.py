"""OffsetFetch (key 9, versions 1 to 10; KIP-447, KIP-709, KIP-848): the committed offsets of groups.

- `Single` is versions 1 to 7, with one group. `ByName` is versions 8 and 9, with several groups, each with
  its own error. `ById` is version 10.
- A partition without a committed offset has offset -1 and no error.
- A client that requires stable offsets (KIP-447) gets UNSTABLE_OFFSET_COMMIT while an open transaction may
  commit another offset.
- A group may ask for the ranges beyond its offsets, which are an extension of version 10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast
from uuid import UUID

from kio.schema.offset_fetch.v7.request import OffsetFetchRequest as OffsetFetchRequestSingle
from kio.schema.offset_fetch.v7.response import OffsetFetchResponse as OffsetFetchResponseSingle
from kio.schema.offset_fetch.v7.response import OffsetFetchResponsePartition, OffsetFetchResponseTopic
from kio.schema.offset_fetch.v9.request import OffsetFetchRequest as OffsetFetchRequestByName
from kio.schema.offset_fetch.v9.request import OffsetFetchRequestGroup as WantedGroupByName
from kio.schema.offset_fetch.v9.response import OffsetFetchResponse as OffsetFetchResponseByName
from kio.schema.offset_fetch.v9.response import OffsetFetchResponseGroup as FetchedGroupByName
from kio.schema.offset_fetch.v9.response import OffsetFetchResponsePartitions as FetchedPartitionByName
from kio.schema.offset_fetch.v9.response import OffsetFetchResponseTopics as FetchedTopicByName

from barnabas.broker.network.handler import Reply, RequestContext, Response
from barnabas.broker.network.replies import encoded_at_length
from barnabas.coordinator.metadata.image import MetadataImage, Topic
from barnabas.coordinator.offsets.committed_offset import CommittedOffset
from barnabas.coordinator.offsets.requests import NO_MEMBER_EPOCH, FetchedOffset
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.extended.offset_fetch_v10 import OffsetFetchRequest as OffsetFetchRequestById
from barnabas.protocol.extended.offset_fetch_v10 import OffsetFetchRequestGroup as WantedGroupById
from barnabas.protocol.extended.offset_fetch_v10 import OffsetFetchResponse as OffsetFetchResponseById
from barnabas.protocol.extended.offset_fetch_v10 import OffsetFetchResponseGroup as FetchedGroupById
from barnabas.protocol.extended.offset_fetch_v10 import OffsetFetchResponsePartitions as FetchedPartitionById
from barnabas.protocol.extended.offset_fetch_v10 import OffsetFetchResponseTopics as FetchedTopicById
from barnabas.protocol.extended.packed import pack_ranges
from barnabas.protocol.primitive import GroupId, TopicName, i32, i64, milliseconds
from barnabas.runtime.turns import Turns, in_turns

if TYPE_CHECKING:
    from barnabas.coordinator.groups import Groups
    from barnabas.coordinator.metadata.controller import Controller
    from barnabas.runtime.long_work import LongWork

_SEVERAL_FROM, _BY_ID_FROM = 8, 10
_NO_ID = UUID(int=0)
_STEPS_PER_GROUP, _STEPS_PER_TOPIC, _STEPS_PER_PARTITION = 3, 2, 2
"""The steps of a turn for each, without its contents."""

_Partition = TypeVar("_Partition")
_Request = OffsetFetchRequestSingle | OffsetFetchRequestByName | OffsetFetchRequestById

NOTHING = CommittedOffset(-1, -1, "", -1)
"""The result for a partition without a committed offset."""


class Parts(NamedTuple):
    metadata: Controller
    long_work: LongWork
    groups: Groups


class _Wanted(NamedTuple):
    """The request about one group; topics by name, None for all."""

    group_id: str
    topics: Mapping[str, Sequence[int]] | None
    require_stable: bool
    member_id: str | None = None
    member_epoch: int = NO_MEMBER_EPOCH
    wants_ranges: bool = False


class _FetchedTopic(NamedTuple):
    """The offsets that a group has committed for one topic name, and the topic of that name at the time."""

    name: str
    topic: Topic | None
    found: list[FetchedOffset]

    def offsets(self) -> list[FetchedOffset]:
        """The offsets; one of an earlier topic of the same name counts as none."""
        topic = self.topic
        return [
            offset
            if topic is None or offset.committed is None or offset.committed.is_for(topic.topic_id)
            else offset._replace(committed=None, ranges=())
            for offset in self.found
        ]


def handle_offset_fetch(parts: Parts, context: RequestContext, request: _Request) -> Reply:
    return in_turns(_answer(parts, context, request))


async def _answer(parts: Parts, context: RequestContext, request: _Request) -> Response:
    turns = Turns()
    response: OffsetFetchResponseById | OffsetFetchResponseByName | OffsetFetchResponseSingle
    if context.api_version >= _BY_ID_FROM:
        groups = cast("OffsetFetchRequestById", request).groups
        response = OffsetFetchResponseById(
            throttle_time=milliseconds(0),
            groups=tuple(
                [await _group_by_id(turns, parts, group, request.require_stable) for group in groups]
            ),
        )
    elif context.api_version >= _SEVERAL_FROM:
        named = cast("OffsetFetchRequestByName", request).groups
        response = OffsetFetchResponseByName(
            throttle_time=milliseconds(0),
            groups=tuple(
                [await _group_by_name(turns, parts, group, request.require_stable) for group in named]
            ),
        )
    else:
        response = await _single(turns, parts, cast("OffsetFetchRequestSingle", request))
    return await encoded_at_length(parts.long_work, turns, context, response)


async def _begin_group(turns: Turns, topics: Sequence[object] | None) -> None:
    """Gives other requests their turn before the look-ups of a group, which belong to one moment."""
    await turns.took(_STEPS_PER_GROUP + len(topics or ()))


def _fetch(parts: Parts, wanted: _Wanted) -> tuple[ErrorCode, list[_FetchedTopic]]:
    try:
        found = parts.groups.offsets.fetch(
            wanted.group_id,
            wanted.topics,
            require_stable=wanted.require_stable,
            member_id=wanted.member_id,
            member_epoch=wanted.member_epoch,
            with_ranges=wanted.wants_ranges,
        )
    except ApiError as error:
        return error.code, []
    by_topic = groupby(found, key=attrgetter("topic_name"))
    topics = parts.metadata.image.topics_by_name
    return ErrorCode.none, [_FetchedTopic(name, topics.get(name), list(ones)) for name, ones in by_topic]


async def _single(turns: Turns, parts: Parts, request: OffsetFetchRequestSingle) -> OffsetFetchResponseSingle:
    await _begin_group(turns, request.topics)
    wanted = _Wanted(request.group_id, _by_name(request.topics), request.require_stable)
    error_code, fetched = _fetch(parts, wanted)
    if error_code is not ErrorCode.none:
        # Version 1 has no error of the group, so it is the error of each partition.
        topics = (wanted.topics or {}).items()
        fetched = [_FetchedTopic(name, None, _nothing(name, ones)) for name, ones in topics]
    return OffsetFetchResponseSingle(
        throttle_time=milliseconds(0),
        error_code=error_code,
        topics=tuple(
            [
                OffsetFetchResponseTopic(
                    name=TopicName(topic.name),
                    partitions=await _partitions(
                        turns, OffsetFetchResponsePartition, topic.offsets(), error_code
                    ),
                )
                for topic in fetched
            ]
        ),
    )


async def _group_by_name(
    turns: Turns, parts: Parts, asked: WantedGroupByName, require_stable: bool
) -> FetchedGroupByName:
    await _begin_group(turns, asked.topics)
    topics = _by_name(asked.topics)
    wanted = _Wanted(asked.group_id, topics, require_stable, asked.member_id, asked.member_epoch)
    error_code, fetched = _fetch(parts, wanted)
    return FetchedGroupByName(
        group_id=GroupId(asked.group_id),
        error_code=error_code,
        topics=tuple(
            [
                FetchedTopicByName(
                    name=TopicName(topic.name),
                    partitions=await _partitions(turns, FetchedPartitionByName, topic.offsets()),
                )
                for topic in fetched
            ]
        ),
    )


async def _group_by_id(
    turns: Turns, parts: Parts, asked: WantedGroupById, require_stable: bool
) -> FetchedGroupById:
    await _begin_group(turns, asked.topics)
    names, unknown = _names_of(parts.metadata.image, asked)
    wanted = _Wanted(
        asked.group_id, names, require_stable, asked.member_id, asked.member_epoch, asked.wants_ranges
    )
    error_code, fetched = _fetch(parts, wanted)
    known = [
        FetchedTopicById(
            topic_id=topic.topic.topic_id,
            partitions=await _partitions(turns, FetchedPartitionById, topic.offsets()),
        )
        for topic in fetched
        if topic.topic is not None
    ]
    refused = [
        FetchedTopicById(
            topic_id=topic_id,
            partitions=await _partitions(
                turns, FetchedPartitionById, _nothing("", ones), ErrorCode.unknown_topic_id
            ),
        )
        for topic_id, ones in unknown
    ]
    is_well = error_code is ErrorCode.none
    return FetchedGroupById(
        group_id=GroupId(asked.group_id),
        error_code=error_code,
        topics=(*known, *refused) if is_well else (),
    )


def _by_name(topics: Iterable[Any] | None) -> Mapping[str, Sequence[int]] | None:
    if topics is None:
        return None
    names: dict[str, list[int]] = {}
    for topic in topics:
        names.setdefault(topic.name, []).extend(topic.partition_indexes)
    return names


def _names_of(
    image: MetadataImage, asked: WantedGroupById
) -> tuple[Mapping[str, Sequence[int]] | None, list[tuple[UUID, Sequence[int]]]]:
    """The topics by name, and by id those that do not exist."""
    if asked.topics is None:
        return None, []
    names: dict[str, list[int]] = {}
    unknown: list[tuple[UUID, Sequence[int]]] = []
    for wanted in asked.topics:
        topic_id = wanted.topic_id or _NO_ID
        topic = image.topics_by_id.get(topic_id)
        if topic is None:
            unknown.append((topic_id, wanted.partition_indexes))
        else:
            names.setdefault(topic.name, []).extend(wanted.partition_indexes)
    return names, unknown


def _nothing(topic_name: str, partitions: Iterable[int]) -> list[FetchedOffset]:
    return [FetchedOffset(topic_name, partition, None) for partition in partitions]


async def _partitions(
    turns: Turns,
    result: Callable[..., _Partition],
    fetched: Sequence[FetchedOffset],
    error_code: ErrorCode = ErrorCode.none,
) -> tuple[_Partition, ...]:
    partitions: list[_Partition] = []
    await turns.took(_STEPS_PER_TOPIC)
    for offset in fetched:
        partitions.append(_partition(result, offset, error_code))
        await turns.took(_STEPS_PER_PARTITION)
    return tuple(partitions)


def _partition(result: Callable[..., _Partition], offset: FetchedOffset, error_code: ErrorCode) -> _Partition:
    committed = offset.committed or NOTHING
    partition = partial(
        result,
        partition_index=i32(offset.partition),
        committed_offset=i64(committed.offset),
        committed_leader_epoch=i32(committed.leader_epoch),
        metadata=committed.metadata,
        error_code=ErrorCode.unstable_offset_commit if offset.is_unstable else error_code,
    )
    return partition(ranges=pack_ranges(offset.ranges)) if offset.ranges else partition()
