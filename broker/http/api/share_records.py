"""The records of a share group: their states, the history of one record, and changes by an administrator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from http import HTTPStatus
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct

from barnabas.broker.handlers.common.share_records import change_records, find_share_partition
from barnabas.broker.http.api.pages import PAGE_ENTRIES, Cursor, Limit, Page, number_in
from barnabas.broker.http.api.record_states import PastChange, RecordRange, StateName, past_change, range_of
from barnabas.broker.http.api.share_groups import GROUP_PATH
from barnabas.broker.http.api.topics import find_topic
from barnabas.broker.http.problem import Problem
from barnabas.broker.http.routes import Call, Operation, with_body, with_query
from barnabas.protocol.record_history import HistoryStep
from barnabas.protocol.record_inspection import NO_NEXT_PAGE, DescribedState, RecordAction
from barnabas.share.leader.inspection import bounds_of, inspect_page
from barnabas.share.log_store.history_search import FROM_NEWEST, find_history
from barnabas.share.log_store.log_state_store import LogStateStore
from barnabas.share.partition.inspection import InspectedRange

if TYPE_CHECKING:
    from collections.abc import Mapping

    from barnabas.broker.node.broker import Broker
    from barnabas.share.leader.share_partition_leader import SharePartitionLeader

_TAG = "records of share groups"
RECORDS_PATH = f"{GROUP_PATH}/topics/{{topic}}/partitions/{{partition}}/records"
_RECORD_PATH = f"{RECORDS_PATH}/{{offset}}"

Offset = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


class RecordQuery(Struct, forbid_unknown_fields=True):
    """A page of records."""

    first_offset: Offset | None = None
    """The first record of the first page; none means the start offset of the group."""
    state: tuple[StateName, ...] = ()
    """Only records in these states; without any, all."""
    limit: Limit = PAGE_ENTRIES
    cursor: Cursor = ""


class RecordPage(Page, kw_only=True):
    """Ranges of records in the order of their offsets, of one moment."""

    start_offset: int
    end_offset: int
    log_start_offset: int
    high_watermark: int
    ranges: Sequence[RecordRange]


class HistoryQuery(Struct, forbid_unknown_fields=True):
    """A page of a history."""

    limit: Limit = PAGE_ENTRIES
    cursor: Cursor = ""


class RecordHistory(Page, kw_only=True):
    """The present state of a record, and its recorded changes, newest first. A delivery is not recorded, only
    its end.
    """

    record: RecordRange
    changes: Sequence[PastChange]
    source: Literal["log", "none"]
    """`none` with share.state.store=topic, which keeps no causes."""
    is_complete: bool
    """On the last page: whether no older change can have been cleaned away."""


class RecordsToChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """A range of records, both ends inclusive; without the last offset, one record."""

    first_offset: Offset
    last_offset: Offset | None = None


class ChangedRecords(Struct, kw_only=True):
    """All records of the range have changed, and that is recorded."""

    record_count: int


class ShareRecordRoutes:
    """The operations on the records of share groups."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def operations(self) -> Sequence[Operation]:
        return (*self._reads(), *self._changes())

    def _reads(self) -> Sequence[Operation]:
        return (
            Operation(
                path=RECORDS_PATH,
                handler=with_query(RecordQuery, self._list),
                name="listRecords",
                summary="The states of a share group's records in a partition",
                tag=_TAG,
                answer=RecordPage,
                failures=(HTTPStatus.NOT_FOUND,),
            ),
            Operation(
                path=f"{_RECORD_PATH}/history",
                handler=with_query(HistoryQuery, self._history),
                name="getRecordHistory",
                summary="The state of one record, and its recorded changes",
                tag=_TAG,
                answer=RecordHistory,
                failures=(HTTPStatus.NOT_FOUND,),
            ),
        )

    def _changes(self) -> Sequence[Operation]:
        return (
            self._change("release", "releaseRecords", "Release held records", RecordAction.RELEASE),
            self._change("archive", "archiveRecords", "Archive records", RecordAction.ARCHIVE),
            self._change(
                "dead-letter", "deadLetterRecords", "Send records to dead letters", RecordAction.DEAD_LETTER
            ),
        )

    def _change(self, verb: str, name: str, summary: str, action: RecordAction) -> Operation:
        return Operation(
            method="POST",
            path=f"{RECORDS_PATH}/{verb}",
            handler=with_body(RecordsToChange, partial(self._administer, action)),
            name=name,
            summary=summary,
            tag=_TAG,
            answer=ChangedRecords,
            failures=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT),
        )

    async def _list(self, call: Call, query: RecordQuery) -> RecordPage:
        leader = await find_leader(self._broker, call.path)
        after = number_in(query.cursor)
        first_offset = query.first_offset if after is None else after
        first_offset = leader.core.spso if first_offset is None else first_offset
        if not query.state:
            return page_of(self._broker, leader, first_offset, query.limit)
        is_wanted = partial(_may_be_in, query.state)
        page = page_of(self._broker, leader, first_offset, query.limit, is_wanted=is_wanted)
        page.ranges = [record_range for record_range in page.ranges if record_range.state in query.state]
        return page

    async def _history(self, call: Call, query: HistoryQuery) -> RecordHistory:
        offset = number_in_path(call.path, "offset")
        leader = await find_leader(self._broker, call.path)
        record = self._record(leader, offset)
        if not isinstance(self._broker.state_store, LogStateStore):
            return RecordHistory(
                record=record, changes=(), source="none", is_complete=False, next_cursor=None
            )
        before = number_in(query.cursor)
        position = FROM_NEWEST if before is None else before
        page = find_history(leader.log, leader.group_id, offset, position, query.limit)
        steps = list(takewhile(_is_acquired_before, page.steps))
        is_begun = len(steps) < len(page.steps)
        is_last = is_begun or page.next_offset is None
        return RecordHistory(
            record=record,
            changes=[past_change(step) for step in steps if step.is_change],
            source="log",
            is_complete=is_last and (is_begun or offset >= leader.log.share_records.earliest_offset),
            next_cursor=None if is_last else str(page.next_offset),
        )

    def _record(self, leader: SharePartitionLeader, offset: int) -> RecordRange:
        """The state of one record. Raises Problem if the partition has no record at the offset."""
        ranges = page_of(self._broker, leader, offset, 1).ranges
        if not ranges or ranges[0].first_offset != offset:
            name = leader.log.topic_partition.directory_name
            raise Problem(HTTPStatus.NOT_FOUND, f"{name} has no record at offset {offset} for the group.")
        ranges[0].last_offset = offset
        return ranges[0]

    async def _administer(self, action: RecordAction, call: Call, asked: RecordsToChange) -> ChangedRecords:
        leader = await find_leader(self._broker, call.path)
        last_offset = asked.first_offset if asked.last_offset is None else asked.last_offset
        record_count = await change_records(
            leader,
            action,
            asked.first_offset,
            last_offset,
            subject="http",
            caller="a client of HTTP",
            client=call.client,
        )
        return ChangedRecords(record_count=record_count)


async def find_leader(broker: Broker, path: Mapping[str, str]) -> SharePartitionLeader:
    """The leader of the share-partition that the path names. Raises Problem, ApiError, StorageError."""
    topic = find_topic(broker, path)
    return await find_share_partition(
        broker.metadata.image,
        broker.groups.share,
        broker.fetch_source,
        path["group"],
        topic.topic_id,
        number_in_path(path, "partition"),
    )


def page_of(
    broker: Broker,
    leader: SharePartitionLeader,
    first_offset: int,
    limit: int,
    *,
    with_changes: bool = True,
    is_wanted: Callable[[InspectedRange], bool] | None = None,
) -> RecordPage:
    """The states of the records from an offset on: all, or the wanted ones. Without changes, each last change
    is `unknown`.
    """
    config = broker.group_configs.of(leader.group_id)
    bounds = bounds_of(leader, config.limits, first_offset, read_committed=config.read_committed)
    page = inspect_page(leader, config.limits, bounds, limit, with_changes=with_changes, is_wanted=is_wanted)
    has_more = page.next_offset != NO_NEXT_PAGE
    return RecordPage(
        start_offset=leader.core.spso,
        end_offset=leader.core.speo,
        log_start_offset=bounds.log_start_offset,
        high_watermark=bounds.high_watermark,
        ranges=[range_of(broker, leader, record_range) for record_range in page.ranges],
        next_cursor=str(page.next_offset) if has_more else None,
    )


def _may_be_in(states: Sequence[StateName], record_range: InspectedRange) -> bool:
    """The store may know how records ended that the start offset has passed."""
    return record_range.state is DescribedState.PASSED or record_range.state.name.lower() in states


def _is_acquired_before(step: HistoryStep) -> bool:
    """Not so at the step before which the group began, or began anew: older steps are another history."""
    return step.state is not DescribedState.NEW


def number_in_path(path: Mapping[str, str], name: str) -> int:
    """The offset or partition in the path. Raises Problem."""
    number = number_in(path[name])
    if number is None:
        raise Problem(HTTPStatus.BAD_REQUEST, f"The path has no {name}.")
    return number
