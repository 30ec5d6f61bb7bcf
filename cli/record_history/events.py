"""The events in the history of one record: the steps of its control records that have changed it. Pure.

A checkpoint repeats the whole state of the group. It is an event only if the state of the record differs from
the one before, as after an administrator's reset, or if older control records were cleaned away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from barnabas.protocol.delivery_state import Cause, Condition
from barnabas.protocol.record_history import UNKNOWN_COUNT, HistoryStep, StepKind
from barnabas.protocol.record_inspection import DescribedState

CHECKPOINT: Final = "checkpoint"
"""The event of a state that has no cause of its own."""
DELETED: Final = "group deleted"

_FINAL: Final = frozenset({DescribedState.ACKNOWLEDGED, DescribedState.ARCHIVED})


class Event(NamedTuple):
    """One change of the record."""

    control_offset: int
    """The offset of the control record."""
    timestamp_ms: int
    """The time of the decision, by the broker's clock."""
    event: str
    """The cause in words, `CHECKPOINT`, or `DELETED`."""
    state: str
    delivery_count: int | None
    """None if the control record does not tell."""
    member_id: str | None
    """The member that caused it, or that lost its lock."""
    condition: Condition | None


def events_of(steps: Iterable[HistoryStep]) -> Iterator[Event]:
    """The events of a history, oldest first, from its steps in this order."""
    before: HistoryStep | None = None
    for step in steps:
        if _is_event(step, before):
            before = step
            yield _event(step)


def _is_event(step: HistoryStep, before: HistoryStep | None) -> bool:
    if step.kind is StepKind.DELETION:
        return before is not None and before.kind is not StepKind.DELETION
    if step.cause is not Cause.NONE:
        return True
    if step.state is DescribedState.NEW:
        return before is not None and before.state is not DescribedState.NEW
    if before is None:
        return True
    is_only_passed = step.state is DescribedState.PASSED and before.state in _FINAL
    return _state(step) != _state(before) and not is_only_passed


def _state(step: HistoryStep) -> tuple[DescribedState, int, Condition | None]:
    return step.state, step.delivery_count, step.condition


def _event(step: HistoryStep) -> Event:
    if step.kind is StepKind.DELETION:
        event = DELETED
    elif step.cause is Cause.NONE:
        event = CHECKPOINT
    else:
        event = step.cause.name.lower().replace("_", " ")
    count = None if step.delivery_count == UNKNOWN_COUNT else step.delivery_count
    return Event(
        step.control_offset,
        step.timestamp_ms,
        event,
        step.state.name.lower(),
        count,
        step.member_id,
        step.condition,
    )
