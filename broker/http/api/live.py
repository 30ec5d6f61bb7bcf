"""The state of one share-partition as a stream of server-sent events, for a console."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta, Struct
from starlette.responses import Response

from barnabas.broker.http.api.pages import PAGE_ENTRIES
from barnabas.broker.http.api.record_states import RecordRange
from barnabas.broker.http.api.share_groups import ShareProgress, progress_of
from barnabas.broker.http.api.share_records import RECORDS_PATH, find_leader, page_of
from barnabas.broker.http.routes import Call, Operation, with_query
from barnabas.broker.http.streams import EVENT_STREAM_TYPE, Streams

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker

INTERVAL_MS_MIN: Final = 250
"""The least time between two events of a stream."""

RANGES_MAX: Final = 500
"""The most ranges in one event."""

_MS_PER_SECOND: Final = 1_000


class LiveQuery(Struct, forbid_unknown_fields=True):
    """A stream of states."""

    interval_ms: Annotated[int, Meta(ge=INTERVAL_MS_MIN, le=60_000)] = 1_000
    """The time between two looks."""
    limit: Annotated[int, Meta(ge=1, le=RANGES_MAX)] = PAGE_ENTRIES
    """The most ranges of each event."""


class LiveState(Struct, kw_only=True):
    """The data of an event: the state of a partition for a group. The totals count since the leader
    is in memory; rates are differences of two events.
    """

    progress: ShareProgress
    ranges: Sequence[RecordRange]
    """The first ranges from the start offset on. Their last changes are `unknown`, because none is searched
    for."""
    lock_duration_ms: int
    """Of new locks, by the group's settings; a member may ask for another duration."""
    archived_total: int
    redelivered_total: int
    lock_timeouts_total: int


class LiveRoutes:
    """The operation that a console follows."""

    def __init__(self, broker: Broker, streams: Streams) -> None:
        self._broker = broker
        self._streams = streams

    def operations(self) -> Sequence[Operation]:
        return (
            Operation(
                path=f"{RECORDS_PATH}/live",
                handler=with_query(LiveQuery, self._follow),
                name="followRecords",
                summary="The states of a share group's records as server-sent events",
                tag="records of share groups",
                media_type=EVENT_STREAM_TYPE,
                failures=(HTTPStatus.NOT_FOUND,),
            ),
        )

    async def _follow(self, call: Call, query: LiveQuery) -> Response:
        look = partial(self._look, call.path, query.limit)
        return await self._streams.begin(look, query.interval_ms / _MS_PER_SECOND)

    async def _look(self, path: Mapping[str, str], limit: int) -> LiveState:
        leader = await find_leader(self._broker, path)
        page = page_of(self._broker, leader, leader.core.spso, limit, with_changes=False)
        return LiveState(
            progress=progress_of(leader),
            ranges=page.ranges,
            lock_duration_ms=self._broker.group_configs.of(leader.group_id).limits.lock_duration_ms,
            archived_total=leader.counts.archived_records,
            redelivered_total=leader.counts.redelivered_records,
            lock_timeouts_total=leader.counts.acquisition_lock_timeouts,
        )
