"""The state of a record in a control record."""

from __future__ import annotations

import pytest

from barnabas.protocol.control_record import ShareCheckpoint, ShareDelta
from barnabas.protocol.delivery_state import Cause, Due, RecordState, StateRange
from barnabas.protocol.record_history import HistoryStep, StepKind, history_step
from barnabas.protocol.record_inspection import DescribedState

RELEASED = StateRange(4, 6, RecordState.AVAILABLE, 2, Cause.RELEASE, "m", Due(900))


def checkpoint(start_offset: int, end_offset: int, *, deleted: bool = False) -> ShareCheckpoint:
    return ShareCheckpoint("g", 1, 1, 100, 0, 0, start_offset, end_offset, 0, (RELEASED,), deleted)


@pytest.mark.parametrize("offset", [4, 5, 6])
def test_a_delta_has_the_state_of_the_offsets_in_its_ranges(offset: int) -> None:
    step = history_step(offset, 20, ShareDelta("g", 1, 1, 100, 0, (RELEASED,)))
    assert step == HistoryStep(
        20, 100, StepKind.CHANGE, DescribedState.AVAILABLE, 2, Cause.RELEASE, "m", Due(900)
    )


@pytest.mark.parametrize("offset", [3, 7])
def test_a_delta_says_nothing_of_other_offsets(offset: int) -> None:
    assert history_step(offset, 20, ShareDelta("g", 1, 1, 100, 0, (RELEASED,))) is None


@pytest.mark.parametrize(
    ("offset", "state", "count"),
    [
        (1, DescribedState.PASSED, -1),
        (2, DescribedState.AVAILABLE, 0),
        (5, DescribedState.AVAILABLE, 2),
        (9, DescribedState.AVAILABLE, 0),
        (10, DescribedState.NEW, -1),
    ],
)
def test_a_checkpoint_has_the_state_of_every_offset(offset: int, state: DescribedState, count: int) -> None:
    step = history_step(offset, 20, checkpoint(2, 10))
    assert step is not None
    assert (step.kind, step.state, step.delivery_count) == (StepKind.CHECKPOINT, state, count)


def test_a_group_that_has_not_begun_has_reached_no_record() -> None:
    step = history_step(5, 20, checkpoint(-1, -1))
    assert step is not None
    assert step.state is DescribedState.NEW


def test_a_tombstone_is_a_deletion() -> None:
    step = history_step(5, 20, checkpoint(0, 10, deleted=True))
    assert step == HistoryStep(20, 100, StepKind.DELETION, DescribedState.NEW)
