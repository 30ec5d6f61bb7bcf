"""`/api/v1/share-groups`: the progress of share groups, partition by partition."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING
from uuid import UUID

from msgspec import Struct

from barnabas.broker.http.api.pages import Page, PageQuery, next_keys, number_in
from barnabas.broker.http.problem import Problem
from barnabas.broker.http.routes import Call, Operation, with_query, without_parameters
from barnabas.coordinator.metadata.share_version import require_share_groups
from barnabas.protocol.errors import ApiError
from barnabas.protocol.identity import SharePartitionKey
from barnabas.share.leader.oldest_records import oldest_record_timestamp_ms
from barnabas.storage.errors import StorageError

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker
    from barnabas.share.leader.share_partition_leader import SharePartitionLeader

_TAG = "share groups"
GROUP_PATH = "/api/v1/share-groups/{group}"

Place = tuple[str, int]
"""Topic and partition."""


class Lag(Struct, kw_only=True):
    """The records that are not final, with those that members hold. A scaler can use it: while the lag of no
    partition is known, the answer is an error instead of 0.
    """

    group_id: str
    lag: int
    partition_count: int
    """The partitions that the group has begun to read."""
    unknown_count: int
    """Those that the sum leaves out, because their start is undecided or their state cannot be read now."""


class ShareProgress(Struct, kw_only=True):
    """The progress of a group in a partition. The numbers are null, and `error` has the reason, if the state
    cannot be read now.
    """

    topic: str
    partition: int
    start_offset: int | None = None
    """Everything before it is final; -1 while the group has not begun."""
    end_offset: int | None = None
    """The group has acquired nothing from here on."""
    high_watermark: int | None = None
    lag: int | None = None
    oldest_record_timestamp_ms: int | None = None
    """The timestamp of the oldest record that is not final. Null without such a record, also if only markers
    of transactions are left; while the group has not begun; and if the log cannot be read there, or has no
    timestamps."""
    in_flight_count: int | None = None
    locked_count: int | None = None
    waiting_count: int | None = None
    """The records that are released with a delay, and are not due yet."""
    error: str | None = None


class ProgressPage(Page, kw_only=True):
    """The partitions that the group reads, by topic and number."""

    partitions: Sequence[ShareProgress]


class ShareGroupRoutes:
    """The operations on share groups as a whole."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def operations(self) -> Sequence[Operation]:
        return (
            Operation(
                path=f"{GROUP_PATH}/lag",
                handler=without_parameters(self._lag),
                name="getLag",
                summary="The lag of a share group over all partitions",
                tag=_TAG,
                answer=Lag,
                failures=(HTTPStatus.NOT_FOUND,),
            ),
            Operation(
                path=f"{GROUP_PATH}/partitions",
                handler=with_query(PageQuery, self._partitions),
                name="listProgress",
                summary="The partitions that a share group reads, with its progress",
                tag=_TAG,
                answer=ProgressPage,
                failures=(HTTPStatus.NOT_FOUND,),
            ),
        )

    async def _lag(self, call: Call) -> Lag:
        group_id = call.path["group"]
        lag = partition_count = unknown_count = 0
        for place, topic_id in sorted(places_of(self._broker, group_id).items()):
            progress = await self._progress(group_id, topic_id, place)
            partition_count += 1
            if progress.lag is None or progress.lag < 0:
                unknown_count += 1
            else:
                lag += progress.lag
            await asyncio.sleep(0)  # a group may have thousands of partitions
        if partition_count == unknown_count:
            raise Problem(
                HTTPStatus.NOT_FOUND, f"The share group {group_id} has not begun to read a partition."
            )
        return Lag(group_id=group_id, lag=lag, partition_count=partition_count, unknown_count=unknown_count)

    async def _partitions(self, call: Call, query: PageQuery) -> ProgressPage:
        group_id = call.path["group"]
        places = places_of(self._broker, group_id)
        chosen, has_more = next_keys(places, _place_in(query.cursor), query.limit)
        partitions: list[ShareProgress] = []
        for place in chosen:
            partitions.append(await self._progress(group_id, places[place], place))
            await asyncio.sleep(0)  # a page may have a thousand partitions
        return ProgressPage(
            partitions=partitions,
            next_cursor=f"{chosen[-1][0]}:{chosen[-1][1]}" if has_more else None,
        )

    async def _progress(self, group_id: str, topic_id: UUID, place: Place) -> ShareProgress:
        topic, partition = place
        try:
            leader = await self._broker.fetch_source.load_leader(
                SharePartitionKey(group_id, topic_id, partition)
            )
        except (ApiError, StorageError) as error:
            return ShareProgress(topic=topic, partition=partition, error=str(error))
        return progress_of(leader)


def places_of(broker: Broker, group_id: str) -> dict[Place, UUID]:
    """The partitions that the group reads, each with its topic's id. Raises ApiError."""
    require_share_groups(broker.metadata.image)
    broker.groups.share.check_exists(group_id)
    return {
        (topic.topic_name, index): topic_id
        for topic_id, topic in broker.groups.share.initialised_partitions(group_id).items()
        for index in topic.partitions
    }


def progress_of(leader: SharePartitionLeader) -> ShareProgress:
    """The progress now."""
    topic, partition = leader.log.topic_partition
    core = leader.core
    return ShareProgress(
        topic=topic,
        partition=partition,
        start_offset=core.spso,
        end_offset=core.speo,
        high_watermark=leader.log.high_watermark,
        lag=leader.lag(),
        oldest_record_timestamp_ms=(
            oldest_record_timestamp_ms(leader.backlog()) if core.is_initialised else None
        ),
        in_flight_count=core.in_flight_count,
        locked_count=sum(lock.record_count for lock in core.held_locks()),
        waiting_count=core.waiting_count,
    )


def _place_in(cursor: str) -> Place | None:
    topic, _, partition = cursor.rpartition(":")
    number = number_in(partition)
    return None if number is None else (topic, number)
