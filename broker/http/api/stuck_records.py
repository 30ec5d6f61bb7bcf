"""`/api/v1/stuck-records`: the records that may need a person, over all share groups and their partitions.

A record is stuck if deliveries of it have ended without a final state, and it is not final yet, if a member
has held it for a long time, or if it is on its way to dead letters. One answer looks at a bounded number of
partitions; its cursor says where to go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple
from uuid import UUID

from msgspec import Meta, Struct

from barnabas.broker.http.api.pages import Page, PageQuery, number_in
from barnabas.broker.http.api.record_states import RecordRange
from barnabas.broker.http.api.share_groups import Place, places_of
from barnabas.broker.http.api.share_records import page_of
from barnabas.broker.http.problem import Problem
from barnabas.broker.http.routes import Call, Operation, with_query
from barnabas.coordinator.metadata.share_version import require_share_groups
from barnabas.coordinator.replay.partition_operations import being_loaded
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import SharePartitionKey
from barnabas.protocol.record_inspection import DescribedState
from barnabas.share.partition.inspection import InspectedRange, failed_delivery_count
from barnabas.storage.errors import StorageError

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker

PARTITIONS_MAX: Final = 100
"""One answer looks at this number of share-partitions at most, so it may be empty although more follow."""


HELD_MS: Final = 300_000
"""Five minutes. Locks last for 30 s by default, and then the member has renewed its lock since."""
HELD_MS_MAX: Final = 7 * 86_400_000


class StuckQuery(PageQuery, forbid_unknown_fields=True):
    """A page of stuck records of these groups; without any, of all share groups."""

    group: tuple[str, ...] = ()
    failed_deliveries: Annotated[int, Meta(ge=1, le=(1 << 15) - 1)] = 1
    """The least number of deliveries that have ended without a final state."""
    held_ms: Annotated[int, Meta(ge=0, le=HELD_MS_MAX)] = HELD_MS
    """The least time for which a member has held a record that is stuck for this reason alone."""


class StuckRecords(Struct, kw_only=True):
    """Neighbouring records of one partition that are alike."""

    group_id: str
    topic: str
    partition: int
    range: RecordRange


class UnreadablePartition(Struct, kw_only=True):
    """A partition whose state cannot be read now."""

    group_id: str
    topic: str
    partition: int
    error: str


class StuckPage(Page, kw_only=True):
    """Stuck records by group, topic, partition and offset."""

    records: Sequence[StuckRecords]
    unreadable: Sequence[UnreadablePartition]


class _Position(NamedTuple):
    """The place where a page begins."""

    group_id: str = ""
    topic: str = ""
    partition: int = 0
    first_offset: int = 0

    @property
    def place(self) -> Place:
        return self.topic, self.partition


class StuckRecordRoutes:
    """The operation that lists stuck records."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def operations(self) -> Sequence[Operation]:
        return (
            Operation(
                path="/api/v1/stuck-records",
                handler=with_query(StuckQuery, self._list),
                name="listStuckRecords",
                summary="Records that were delivered in vain, are held too long, or wait for dead letters",
                tag="records of share groups",
                answer=StuckPage,
                failures=(HTTPStatus.NOT_FOUND,),
            ),
        )

    async def _list(self, _: Call, query: StuckQuery) -> StuckPage:
        records: list[StuckRecords] = []
        unreadable: list[UnreadablePartition] = []
        next_position: _Position | None = None
        positions = self._positions(query.group, _position_in(query.cursor))
        for look_count, (position, topic_id) in enumerate(positions):
            if look_count == PARTITIONS_MAX or len(records) == query.limit:
                next_position = position
                break
            try:
                found, next_offset = await self._look(position, topic_id, query, query.limit - len(records))
            except (ApiError, StorageError) as error:
                unreadable.append(_unreadable(position, error))
                continue
            records += found
            if next_offset is not None:
                next_position = position._replace(first_offset=next_offset)
                break
            await asyncio.sleep(0)
        next_cursor = None if next_position is None else _cursor(next_position)
        return StuckPage(records=records, unreadable=unreadable, next_cursor=next_cursor)

    def _positions(self, wanted: Sequence[str], begin: _Position) -> Iterator[tuple[_Position, UUID]]:
        """All share-partitions of the groups from the position on, ascending, each with its topic's id.

        Raises ApiError for a wanted group that does not exist, and while a group is not known.
        """
        for group_id in sorted(set(wanted or self._all_groups())):
            if group_id < begin.group_id:
                continue
            try:
                places = places_of(self._broker, group_id)
            except ApiError as error:
                if wanted or error.code is not ErrorCode.group_id_not_found:
                    raise
                continue  # it was deleted during the search
            for place, topic_id in sorted(places.items()):
                position = _Position(group_id, *place)
                if group_id > begin.group_id or place > begin.place:
                    yield position, topic_id
                elif place == begin.place:
                    yield begin, topic_id

    def _all_groups(self) -> Sequence[str]:
        """The ids of all share groups. UNSUPPORTED_VERSION, COORDINATOR_LOAD_IN_PROGRESS."""
        require_share_groups(self._broker.metadata.image)
        if not self._broker.groups.share.all_loaded:
            raise being_loaded()
        return [group.group_id for group in self._broker.groups.list_groups((), ("share",))]

    async def _look(
        self, position: _Position, topic_id: UUID, query: StuckQuery, limit: int
    ) -> tuple[Sequence[StuckRecords], int | None]:
        """The stuck records of one partition, and the offset where to go on.

        Raises ApiError, StorageError.
        """
        key = SharePartitionKey(position.group_id, topic_id, position.partition)
        leader = await self._broker.fetch_source.load_leader(key)
        first_offset = max(position.first_offset, leader.core.spso)
        is_wanted = partial(_is_stuck, query, self._broker.clock.monotonic_ms())
        page = page_of(self._broker, leader, first_offset, limit, is_wanted=is_wanted)
        found = [
            StuckRecords(
                group_id=position.group_id,
                topic=position.topic,
                partition=position.partition,
                range=record_range,
            )
            for record_range in page.ranges
        ]
        return found, number_in(page.next_cursor or "")


def _is_stuck(query: StuckQuery, now_ms: int, record_range: InspectedRange) -> bool:
    if (
        record_range.state is DescribedState.ARCHIVING
        or failed_delivery_count(record_range) >= query.failed_deliveries
    ):
        return True
    return record_range.owner is not None and now_ms - record_range.acquired_ms >= query.held_ms


def _unreadable(position: _Position, error: Exception) -> UnreadablePartition:
    return UnreadablePartition(
        group_id=position.group_id, topic=position.topic, partition=position.partition, error=str(error)
    )


def _cursor(position: _Position) -> str:
    """The group is the last part, because only its name may contain a colon."""
    return f"{position.first_offset}:{position.partition}:{position.topic}:{position.group_id}"


def _position_in(cursor: str) -> _Position:
    """The start of the page. Raises Problem."""
    if not cursor:
        return _Position()
    parts = cursor.split(":", 3)
    if len(parts) == 4:
        first_offset, partition, topic, group_id = parts
        offset, index = number_in(first_offset), number_in(partition)
        if offset is not None and index is not None:
            return _Position(group_id, topic, index, offset)
    raise Problem(HTTPStatus.BAD_REQUEST, f"There is no cursor {cursor}: use the next_cursor of a page.")
