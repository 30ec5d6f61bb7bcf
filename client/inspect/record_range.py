"""The state of a share group's records, as the broker describes it, range by range. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.protocol.delivery_state import Cause, Condition, decode_condition
from barnabas.protocol.extended.describe_share_record_history_v0 import DescribedStep
from barnabas.protocol.extended.describe_share_records_v0 import (
    DescribedRange,
    DescribeShareRecordsResponse,
)
from barnabas.protocol.extended.describe_share_records_v0 import LastChange as ChangeOnWire
from barnabas.protocol.extended.describe_share_records_v0 import LockHolder as HolderOnWire
from barnabas.protocol.record_history import HistoryStep, StepKind
from barnabas.protocol.record_inspection import DescribedState, Wait
from barnabas.protocol.varint import RecordFormatError


class LockHolder(NamedTuple):
    """The member that holds records, until `lock_deadline_ms` (since 1970, by the broker's clock).

    Its client id and host are None if it is no member of the group. `acquired_ms` is when it acquired them,
    by the same clock, also if it has renewed the lock; None if the broker is too old to tell.
    """

    member_id: str
    client_id: str | None
    client_host: str | None
    lock_deadline_ms: int
    lock_remaining_ms: int
    acquired_ms: int | None = None


class LastChange(NamedTuple):
    """The last recorded change of some records. `Cause.NONE` with the time -1: none was ever recorded."""

    cause: Cause
    timestamp_ms: int
    """Since 1970, by the broker's clock."""
    member_id: str | None
    """The member that caused it, or that lost its lock."""


class RecordRange(NamedTuple):
    """Neighbouring records that are alike in everything. Some offsets in between may have no record."""

    topic: str
    partition: int
    first_offset: int
    last_offset: int
    """Inclusive."""
    state: DescribedState
    delivery_count: int
    """-1 if it is unknown, because the group's start offset has passed the records."""
    wait: Wait
    holder: LockHolder | None
    """None unless the records are acquired."""
    last_change: LastChange | None
    """None if it is unknown: always with `share.state.store=topic`, and for changes of long ago."""
    due_ms: int | None = None
    """When the first of the records is due, if they wait for that: since 1970, by the broker's clock."""
    priority: int | None = None
    """With `share.priority.header`: the priority, from 0 to 9, of available and acquired records that the
    broker has looked at; None for others.
    """


class GroupProgress(NamedTuple):
    """The offsets of a group in a partition. All ends are exclusive."""

    start_offset: int
    """The group's start offset; -1 if it has not begun."""
    end_offset: int
    """The end of the records that the group has acquired; -1 if it has not begun."""
    log_start_offset: int
    high_watermark: int


class RangePage(NamedTuple):
    """One response; `next_offset` is -1 if no page follows."""

    progress: GroupProgress
    ranges: Sequence[RecordRange]
    next_offset: int


def page_of(topic: str, partition: int, response: DescribeShareRecordsResponse) -> RangePage:
    """The response for this partition. ValueError for an unknown state, wait or cause."""
    progress = GroupProgress(
        response.start_offset, response.end_offset, response.log_start_offset, response.high_watermark
    )
    ranges = [_range(topic, partition, described) for described in response.ranges]
    return RangePage(progress, ranges, response.next_offset)


def step_of(described: DescribedStep) -> HistoryStep:
    """The step; ValueError for an unknown kind, state, cause or condition."""
    return HistoryStep(
        described.control_offset,
        described.timestamp_ms,
        StepKind(described.kind),
        DescribedState(described.state),
        described.delivery_count,
        Cause(described.cause),
        described.member_id,
        None if described.condition is None else _condition(described.condition),
    )


def _condition(data: bytes) -> Condition:
    try:
        return decode_condition(data)
    except RecordFormatError as error:
        raise ValueError(str(error)) from error


def _range(topic: str, partition: int, described: DescribedRange) -> RecordRange:
    return RecordRange(
        topic,
        partition,
        described.first_offset,
        described.last_offset,
        DescribedState(described.state),
        described.delivery_count,
        Wait(described.wait),
        None if described.holder is None else _holder(described.holder),
        None if described.last_change is None else _change(described.last_change),
        described.due_ms or None,
        None if described.priority < 0 else described.priority,
    )


def _holder(holder: HolderOnWire) -> LockHolder:
    return LockHolder(
        holder.member_id,
        holder.client_id,
        holder.client_host,
        holder.lock_deadline_ms,
        holder.lock_remaining_ms,
        holder.acquired_ms or None,
    )


def _change(change: ChangeOnWire) -> LastChange:
    return LastChange(Cause(change.cause), change.timestamp_ms, change.member_id)
