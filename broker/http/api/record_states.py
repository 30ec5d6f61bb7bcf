"""The states of a share group's records in JSON: the names are those of `barnabas inspect --json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from barnabas.broker.handlers.common.share_records import HeldLock, held_lock
from barnabas.protocol.delivery_state import Cause
from barnabas.protocol.record_history import HistoryStep
from barnabas.protocol.record_inspection import Wait
from barnabas.share.leader.inspection import DescribedRecords
from barnabas.share.leader.recorded_changes import RecordedChange

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker
    from barnabas.share.leader.share_partition_leader import SharePartitionLeader


StateName = Literal["new", "available", "acquired", "acknowledged", "archiving", "archived", "passed"]
"""The names of `DescribedState`, in small letters."""


class Holder(Struct, kw_only=True):
    """The member that holds the records, until the end of its lock. It may have left the group."""

    member_id: str
    client_id: str | None
    client_host: str | None
    acquired_ms: int
    """When the member acquired the records, in wall-clock time. A renewal does not change it."""
    lock_deadline_ms: int
    """Wall-clock time."""
    lock_remaining_ms: int


class Change(Struct, kw_only=True):
    """The last recorded change. `cause` is `unknown` if the broker cannot tell any more, and then the other
    fields are null.
    """

    cause: str
    timestamp_ms: int | None = None
    member_id: str | None = None


class RecordRange(Struct, kw_only=True):
    """Neighbouring records that are alike, both ends inclusive."""

    first_offset: int
    last_offset: int
    state: str
    """`new`, `available`, `acquired`, `acknowledged`, `archiving`, `archived` or `passed`."""
    delivery_count: int | None
    """Null if the start offset has passed the records."""
    priority: int | None
    """From 0 to 9, with `share.priority.header`; null if the broker has not looked at the records, or if they
    are final.
    """
    wait: str | None
    """The reason why a fetch does not get the records now."""
    due_ms: int | None
    """When the first of the records is due, if they wait for that: wall-clock time."""
    holder: Holder | None
    last_change: Change | None
    """Null if none was ever recorded."""


class PastChange(Struct, kw_only=True):
    """One recorded change of a record."""

    control_offset: int
    """The offset of the control record."""
    timestamp_ms: int
    state: str
    delivery_count: int
    cause: str
    member_id: str | None
    """The member that caused it, or that lost its lock by it."""


def range_of(broker: Broker, leader: SharePartitionLeader, described: DescribedRecords) -> RecordRange:
    """One range of a page."""
    inspected, last_change = described
    return RecordRange(
        first_offset=inspected.first_offset,
        last_offset=inspected.last_offset,
        state=inspected.state.name.lower(),
        delivery_count=None if inspected.delivery_count < 0 else inspected.delivery_count,
        priority=inspected.priority,
        wait=None if inspected.wait is Wait.NOTHING else _words(inspected.wait.name),
        due_ms=inspected.due_ms or None,
        holder=_holder(held_lock(broker.groups.share, broker.clock, leader, inspected)),
        last_change=_last_change(last_change),
    )


def past_change(step: HistoryStep) -> PastChange:
    """One entry of a history."""
    return PastChange(
        control_offset=step.control_offset,
        timestamp_ms=step.timestamp_ms,
        state=step.state.name.lower(),
        delivery_count=step.delivery_count,
        cause=_words(step.cause.name),
        member_id=step.member_id,
    )


def _holder(lock: HeldLock | None) -> Holder | None:
    return None if lock is None else Holder(**lock._asdict())


def _last_change(change: RecordedChange | None) -> Change | None:
    if change is None:
        return Change(cause="unknown")
    if change.cause is Cause.NONE:
        return None
    return Change(
        cause=_words(change.cause.name), timestamp_ms=change.timestamp_ms, member_id=change.member_id
    )


def _words(name: str) -> str:
    return name.lower().replace("_", " ")
