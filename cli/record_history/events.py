"""The events in the history of one record: the steps of its control records that have changed it. Pure.

A checkpoint repeats the whole state of the group. It is an event only if the state of the record differs from
the one before, as after an administrator's reset, or if older control records were cleaned away. The state of
a record without a delivery is no event, unless something happened to the record before: acquired is recorded
as available with one delivery less, so a record that is delivered for the first time has that state, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from barnabas.protocol.delivery_state import Cause, Condition, Due, LetterPlace, PendingAcknowledgement
from barnabas.protocol.record_history import UNKNOWN_COUNT, HistoryStep, StepKind
from barnabas.protocol.record_inspection import DescribedState

CHECKPOINT: Final = "checkpoint"
"""The event of a state that has no cause of its own."""
DELETED: Final = "group deleted"
DELAYED: Final = "delayed"
"""The record waits for its first delivery, because of its header."""
IN_TRANSACTION: Final = "acknowledged in transaction"
"""The acknowledgement waits for the end of its transaction."""

_FINAL: Final = frozenset({DescribedState.ACKNOWLEDGED, DescribedState.ARCHIVED})


class Event(NamedTuple):
    """One change of the record."""

    control_offset: int
    """The offset of the control record."""
    timestamp_ms: int
    """The time of the decision, by the broker's clock."""
    event: str
    """The cause in words, or one of the constants above."""
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
        return step.state is not DescribedState.AVAILABLE or _state(step)[1:] != (0, None)
    if isinstance(step.condition, LetterPlace) and isinstance(before.condition, LetterPlace):
        return False  # only the place of the dead letter has changed
    is_only_passed = step.state is DescribedState.PASSED and before.state in _FINAL
    return _state(step) != _state(before) and not is_only_passed


def _state(step: HistoryStep) -> tuple[DescribedState, int, Condition | None]:
    return step.state, step.delivery_count, step.condition


def _event(step: HistoryStep) -> Event:
    count = None if step.delivery_count == UNKNOWN_COUNT else step.delivery_count
    return Event(
        step.control_offset,
        step.timestamp_ms,
        _name(step),
        step.state.name.lower(),
        count,
        step.member_id,
        step.condition,
    )


def _name(step: HistoryStep) -> str:
    if step.kind is StepKind.DELETION:
        return DELETED
    if step.cause is not Cause.NONE:
        return step.cause.name.lower().replace("_", " ")
    if step.kind is StepKind.CHECKPOINT:
        return CHECKPOINT
    if isinstance(step.condition, PendingAcknowledgement):
        return IN_TRANSACTION
    return DELAYED if isinstance(step.condition, Due) else CHECKPOINT
