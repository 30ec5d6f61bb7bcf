"""The events in the history of a record, from the control records of its group."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import pytest

from barnabas.cli.record_history.events import Event, events_of
from barnabas.protocol.control_record import ShareCheckpoint, ShareDelta
from barnabas.protocol.delivery_state import (
    Cause,
    Due,
    LetterPlace,
    PendingAcknowledgement,
    RecordState,
    StateRange,
)
from barnabas.protocol.record_history import history_step

GROUP = "workers"
AVAILABLE, ACKNOWLEDGED = RecordState.AVAILABLE, RecordState.ACKNOWLEDGED
ARCHIVING, ARCHIVED = RecordState.ARCHIVING, RecordState.ARCHIVED
TOPIC_ID = UUID(int=7)


def checkpoint(
    start_offset: int, end_offset: int, *states: StateRange, deleted: bool = False
) -> ShareCheckpoint:
    return ShareCheckpoint(GROUP, 1, 1, 100, 0, 0, start_offset, end_offset, 0, states, deleted)


def delta(*states: StateRange, at_ms: int = 200) -> ShareDelta:
    return ShareDelta(GROUP, 1, 1, at_ms, 0, states)


def told(offset: int, *records: ShareCheckpoint | ShareDelta) -> Sequence[Event]:
    steps = [history_step(offset, 10 + number, record) for number, record in enumerate(records)]
    return list(events_of(step for step in steps if step is not None))


def test_each_change_of_the_record_is_an_event() -> None:
    events = told(
        3,
        checkpoint(0, 0),
        delta(StateRange(2, 4, AVAILABLE, 1, Cause.RELEASE, "m-1", Due(900)), at_ms=200),
        delta(StateRange(0, 2, ACKNOWLEDGED, 1, Cause.ACCEPT, "m-1"), at_ms=250),
        delta(StateRange(3, 3, ACKNOWLEDGED, 2, Cause.ACCEPT, "m-2"), at_ms=300),
    )
    assert events == [
        Event(11, 200, "release", "available", 1, "m-1", Due(900)),
        Event(13, 300, "accept", "acknowledged", 2, "m-2", None),
    ]


def test_a_filler_without_a_cause_is_no_event() -> None:
    released = StateRange(5, 5, AVAILABLE, 1, Cause.RELEASE, "m")
    assert len(told(5, delta(released), delta(released._replace(cause=Cause.NONE, member=None)))) == 1


def test_a_checkpoint_that_repeats_the_state_is_no_event() -> None:
    released = StateRange(5, 5, AVAILABLE, 1, Cause.RELEASE, "m")
    events = told(5, delta(released), checkpoint(0, 9, released._replace(cause=Cause.NONE, member=None)))
    assert [one.event for one in events] == ["release"]


def test_a_final_record_that_the_start_offset_has_passed_is_no_event() -> None:
    accepted = StateRange(5, 5, ACKNOWLEDGED, 1, Cause.ACCEPT, "m")
    assert [one.event for one in told(5, delta(accepted), checkpoint(6, 6))] == ["accept"]


@pytest.mark.parametrize(
    ("after", "state", "count"),
    [
        (checkpoint(9, 9), "passed", None),
        (checkpoint(0, 0), "new", None),
        (checkpoint(0, 9), "available", 0),
        (checkpoint(0, 9, StateRange(0, 8, ARCHIVED, 3)), "archived", 3),
    ],
)
def test_a_checkpoint_that_changes_the_state_is_an_event(
    after: ShareCheckpoint, state: str, count: int | None
) -> None:
    released = StateRange(5, 5, AVAILABLE, 1, Cause.RELEASE, "m")
    _, event = told(5, delta(released), after)
    assert (event.event, event.state, event.delivery_count) == ("checkpoint", state, count)


def test_the_first_checkpoint_tells_a_state_whose_changes_were_cleaned() -> None:
    (event,) = told(5, checkpoint(0, 9, StateRange(5, 5, AVAILABLE, 2)))
    assert (event.event, event.state, event.delivery_count) == ("checkpoint", "available", 2)


@pytest.mark.parametrize(
    "record",
    [
        checkpoint(0, 9),
        checkpoint(0, 9, StateRange(5, 5, AVAILABLE, 0)),
        delta(StateRange(4, 6, AVAILABLE, 0)),
    ],
)
def test_a_first_delivery_is_no_event_when_other_records_change(
    record: ShareCheckpoint | ShareDelta,
) -> None:
    accepted = StateRange(5, 5, ACKNOWLEDGED, 1, Cause.ACCEPT, "m")
    assert told(5, record) == []
    assert [one.event for one in told(5, record, delta(accepted))] == ["accept"]


def test_another_place_for_the_dead_letter_is_no_event() -> None:
    given_up = StateRange(5, 5, ARCHIVING, 5, Cause.DELIVERY_LIMIT, "m", LetterPlace(Cause.DELIVERY_LIMIT))
    moved = given_up._replace(
        cause=Cause.NONE, member=None, condition=LetterPlace(Cause.DELIVERY_LIMIT, TOPIC_ID, 0, 3)
    )
    written = StateRange(5, 5, ARCHIVED, 5, Cause.DEAD_LETTER)
    events = told(5, delta(given_up), delta(moved), delta(written))
    assert [one.event for one in events] == ["delivery limit", "dead letter"]


@pytest.mark.parametrize(
    ("count", "condition", "event"),
    [
        (0, Due(900), "delayed"),
        (1, PendingAcknowledgement(7, 0, 1, "m"), "acknowledged in transaction"),
    ],
)
def test_a_condition_without_a_cause_has_its_own_name(
    count: int, condition: Due | PendingAcknowledgement, event: str
) -> None:
    (found,) = told(5, delta(StateRange(5, 5, AVAILABLE, count, Cause.NONE, None, condition)))
    assert (found.event, found.state, found.condition) == (event, "available", condition)


def test_a_record_that_the_group_has_not_reached_has_no_history() -> None:
    assert told(20, checkpoint(-1, -1), checkpoint(0, 9)) == []


def test_the_deletion_of_the_group_is_an_event() -> None:
    accepted = StateRange(5, 5, ACKNOWLEDGED, 1, Cause.ACCEPT, "m")
    events = told(5, delta(accepted), checkpoint(-1, -1, deleted=True))
    assert [one.event for one in events] == ["accept", "group deleted"]
