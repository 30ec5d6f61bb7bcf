"""ListOffsets (key 2, versions 1 to 11; KIP-79, KIP-207, KIP-734): the offset for a timestamp.

Timestamps below 0 have a meaning, each from a certain version on:

- -1: the end of the log, which is the visible high watermark, or the last stable offset for read_committed
- -2: the log start
- -3: the record with the greatest timestamp
- -4: the start of the records on the local disk
- -5 and -6: the records in tiered storage; there are none, so the offset is -1

Others are UNSUPPORTED_VERSION. The offset is -1, without an error, if no record reaches the timestamp. Share
state in the log does not count. Other requests are served during a search by time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from kio.schema.list_offsets.v11.request import ListOffsetsPartition, ListOffsetsRequest
from kio.schema.list_offsets.v11.response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

from barnabas.broker.handlers.common.partitions import answer_with_logs, find_log, find_partition, open_logs
from barnabas.broker.network.replies import encoded_at_length
from barnabas.coordinator.metadata.leader_epoch import check_leader_epoch
from barnabas.protocol.errors import ApiError, ErrorCode, without_frames
from barnabas.protocol.primitive import i32, i64, milliseconds
from barnabas.runtime.turns import Turns, in_turns
from barnabas.storage.errors import StorageError
from barnabas.storage.reading.offset_lookup import TimedOffset

if TYPE_CHECKING:
    from barnabas.broker.network.handler import Reply, RequestContext, Response
    from barnabas.coordinator.metadata.controller import Controller
    from barnabas.coordinator.metadata.partition_logs import PartitionLogs
    from barnabas.runtime.long_work import LongWork
    from barnabas.runtime.stepwise import StepwiseWork
    from barnabas.storage.log.partition_log import PartitionLog

_LATEST, _EARLIEST, _MAX_TIMESTAMP, _EARLIEST_LOCAL, _LATEST_TIERED, _EARLIEST_PENDING_UPLOAD = range(
    -1, -7, -1
)
_KNOWN_FROM_VERSION = {
    _LATEST: 0,
    _EARLIEST: 0,
    _MAX_TIMESTAMP: 7,
    _EARLIEST_LOCAL: 8,
    _LATEST_TIERED: 9,
    _EARLIEST_PENDING_UPLOAD: 11,
}
_READ_COMMITTED = 1
_STEPS_PER_PARTITION = 2
"""The steps of a turn for one partition, and as many for its topic."""
_STEPS_PER_SEARCH = 100
"""The steps of a turn for a search by time, which looks into a few records."""


class Parts(NamedTuple):
    metadata: Controller
    node_id: int
    logs: PartitionLogs
    long_work: LongWork
    time_lookups: StepwiseWork


class _Offset(NamedTuple):
    """The result for one partition; all -1 if there is no such record."""

    timestamp_ms: int = -1
    offset: int = -1
    leader_epoch: int = -1


_NOTHING = _Offset()

_Found = TimedOffset | None | StorageError
"""The result of a search by time."""
_Searches = dict[tuple[str, int], "tuple[PartitionLog, _Found]"]
"""The searched log and the result, by topic name and partition."""


def handle_list_offsets(parts: Parts, context: RequestContext, request: ListOffsetsRequest) -> Reply:
    if any(_is_time(partition.timestamp) for topic in request.topics for partition in topic.partitions):
        return _answer_by_time(parts, context, request)
    return answer_with_logs(
        parts.metadata.image,
        parts.logs,
        _names(request),
        lambda: in_turns(_answer(parts, context, request, {})),
    )


async def _answer_by_time(parts: Parts, context: RequestContext, request: ListOffsetsRequest) -> Response:
    return await _answer(parts, context, request, await _search_times(parts, request))


def _is_time(timestamp: int) -> bool:
    return timestamp >= 0 or timestamp == _MAX_TIMESTAMP


async def _search_times(parts: Parts, request: ListOffsetsRequest) -> _Searches:
    """Searches the partitions with a timestamp, one after the other; skips those without a log."""
    opening = open_logs(parts.metadata.image, parts.logs, _names(request))
    if opening is not None:
        await opening
    searches: _Searches = {}
    turns = Turns()
    for topic in request.topics:
        for asked in _each_once(topic.partitions):
            if _is_time(asked.timestamp):
                name = topic.name, asked.partition_index
                with suppress(ApiError, StorageError):
                    log = find_log(parts.logs, find_partition(parts.metadata.image, parts.node_id, *name))
                    searches[name] = log, await _search_time(parts.time_lookups, log, asked.timestamp)
                await turns.took(_STEPS_PER_SEARCH)
    return searches


async def _search_time(lookups: StepwiseWork, log: PartitionLog, timestamp: int) -> _Found:
    try:
        if timestamp == _MAX_TIMESTAMP:
            return await log.max_timestamp(lookups)
        return await log.offset_for_timestamp(timestamp, lookups)
    except StorageError as error:
        return without_frames(error)


def _names(request: ListOffsetsRequest) -> Iterator[tuple[str, int]]:
    for topic in request.topics:
        for partition in topic.partitions:
            yield topic.name, partition.partition_index


async def _answer(
    parts: Parts, context: RequestContext, request: ListOffsetsRequest, searches: _Searches
) -> Response:
    turns, topics = Turns(), list[ListOffsetsTopicResponse]()
    names = list(_names(request))
    await turns.took(len(names))
    seen = Counter(names)
    for topic in request.topics:
        partitions: list[ListOffsetsPartitionResponse] = []
        for asked in _each_once(topic.partitions):
            name = topic.name, asked.partition_index
            if seen[name] > 1:
                partitions.append(_invalid(asked))
            else:
                isolation_level, search = request.isolation_level, searches.get(name)
                partitions.append(_one_partition(parts, context, name, asked, isolation_level, search))
            await turns.took(_STEPS_PER_PARTITION)
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=tuple(partitions)))
        await turns.took(_STEPS_PER_PARTITION)
    response = ListOffsetsResponse(throttle_time=milliseconds(0), topics=tuple(topics))
    return await encoded_at_length(parts.long_work, turns, context, response)


def _each_once(partitions: Iterable[ListOffsetsPartition]) -> Iterable[ListOffsetsPartition]:
    return {partition.partition_index: partition for partition in partitions}.values()


def _invalid(partition: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
    """The result for a partition that the request names twice, as in Kafka."""
    return _response(partition, ErrorCode.invalid_request, _NOTHING)


def _one_partition(
    parts: Parts,
    context: RequestContext,
    name: tuple[str, int],
    asked: ListOffsetsPartition,
    isolation_level: int,
    search: tuple[PartitionLog, _Found] | None,
) -> ListOffsetsPartitionResponse:
    try:
        if asked.timestamp < 0 and context.api_version < _KNOWN_FROM_VERSION.get(asked.timestamp, 1 << 15):
            raise ApiError(ErrorCode.unsupported_version)
        led = find_partition(parts.metadata.image, parts.node_id, *name)
        check_leader_epoch(led.partition.leader_epoch, asked.current_leader_epoch)
        log = find_log(parts.logs, led)
        found = _found_in(log, search) if _is_time(asked.timestamp) else None
        return _response(asked, ErrorCode.none, _offset(log, asked.timestamp, isolation_level, found))
    except (ApiError, StorageError) as error:
        return _response(asked, error.code, _NOTHING)


def _found_in(log: PartitionLog, search: tuple[PartitionLog, _Found] | None) -> _Found:
    """The result of a search in this log; raises `ApiError` if another log has replaced the searched one."""
    if search is None or search[0] is not log:
        raise ApiError(ErrorCode.not_leader_or_follower, "The partition was reopened during the search.")
    return search[1]


def _offset(log: PartitionLog, timestamp: int, isolation_level: int, found: _Found) -> _Offset:
    end = log.last_stable_offset if isolation_level == _READ_COMMITTED else log.high_watermark
    if timestamp == _LATEST:
        return _Offset(offset=end, leader_epoch=log.leader_epoch)
    if timestamp in (_EARLIEST, _EARLIEST_LOCAL):
        return _earliest(log)
    if timestamp in (_LATEST_TIERED, _EARLIEST_PENDING_UPLOAD):
        return _NOTHING
    if isinstance(found, Exception):
        raise without_frames(found)
    if found is None or found[1] >= end:
        return _NOTHING
    return _Offset(*found, log.leader_epoch_at(found[1]))


def _earliest(log: PartitionLog) -> _Offset:
    leader_epoch = log.leader_epoch_at(log.log_start_offset)
    # An empty log has no epoch at its start yet; its next record will have the current one.
    return _Offset(
        offset=log.log_start_offset, leader_epoch=log.leader_epoch if leader_epoch < 0 else leader_epoch
    )


def _response(
    asked: ListOffsetsPartition, error_code: ErrorCode, found: _Offset
) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        error_code=error_code,
        timestamp=i64(found.timestamp_ms),
        offset=i64(found.offset),
        leader_epoch=i32(found.leader_epoch),
    )
