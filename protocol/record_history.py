"""The state of one record as each control record of a group has it: the steps of its history. Pure.

A first delivery is not recorded, so a history begins with its end. A checkpoint repeats the whole state of
the group, so its step changes the record only if it differs from the step before.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Final, NamedTuple

from barnabas.protocol.control_record import ShareCheckpoint, ShareDelta
from barnabas.protocol.delivery_state import Cause, Condition, StateRange
from barnabas.protocol.record_inspection import DescribedState

UNKNOWN_COUNT: Final = -1
"""The delivery count of a state that no range of a control record describes."""


class StepKind(IntEnum):
    """The kind of the control record."""

    CHANGE = 0
    """A delta: the change of one append."""
    CHECKPOINT = 1
    """The whole state of the group."""
    DELETION = 2
    """The group, or its offsets of the topic, were deleted."""


class HistoryStep(NamedTuple):
    """The record after one control record of the group."""

    control_offset: int
    """The offset of the control record."""
    timestamp_ms: int
    """The time of the decision, by the broker's clock."""
    kind: StepKind
    state: DescribedState
    delivery_count: int = UNKNOWN_COUNT
    cause: Cause = Cause.NONE
    member_id: str | None = None
    """The member that caused it, or that lost its lock."""
    condition: Condition | None = None

    @property
    def is_change(self) -> bool:
        """Whether the group changed the record in this step. States without a cause only fill the
        gaps between others, and checkpoints repeat earlier states.
        """
        return self.kind is StepKind.CHANGE and self.cause is not Cause.NONE


def history_step(
    offset: int, control_offset: int, record: ShareCheckpoint | ShareDelta
) -> HistoryStep | None:
    """The state of the record at `offset` in a control record; None if a delta does not concern it."""
    found = _range_of(record.states, offset)
    if isinstance(record, ShareDelta):
        return None if found is None else _of_range(StepKind.CHANGE, control_offset, record, found)
    if record.deleted:
        return HistoryStep(control_offset, record.decided_at_ms, StepKind.DELETION, DescribedState.NEW)
    if record.start_offset < 0 or offset >= record.end_offset:
        state = DescribedState.NEW
    elif offset < record.start_offset:
        state = DescribedState.PASSED
    elif found is not None:
        return _of_range(StepKind.CHECKPOINT, control_offset, record, found)
    else:  # a hole in a checkpoint is available, and was never delivered
        state = DescribedState.AVAILABLE
    count = 0 if state is DescribedState.AVAILABLE else UNKNOWN_COUNT
    return HistoryStep(control_offset, record.decided_at_ms, StepKind.CHECKPOINT, state, count)


def _of_range(
    kind: StepKind, control_offset: int, record: ShareCheckpoint | ShareDelta, found: StateRange
) -> HistoryStep:
    return HistoryStep(
        control_offset,
        record.decided_at_ms,
        kind,
        DescribedState(found.state),
        found.delivery_count,
        found.cause,
        found.member,
        found.condition,
    )


def _range_of(states: Iterable[StateRange], offset: int) -> StateRange | None:
    return next(
        (
            state_range
            for state_range in states
            if state_range.base_offset <= offset <= state_range.last_offset
        ),
        None,
    )
