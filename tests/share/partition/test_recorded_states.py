"""The content of a delta: fillers, merging, later changes over earlier ones, skipped holes."""

from __future__ import annotations

import pytest

from barnabas.protocol.delivery_state import Cause, RecordState, StateRange
from barnabas.share.log_store.delta_states import delta_states
from tests.share.partition.leader import ACCEPT, ACKNOWLEDGED, ARCHIVED, AVAILABLE, GAP, RELEASE, Leader


def held(*sizes: int) -> Leader:
    leader = Leader().produce(*sizes)
    leader.fetch(batch_size=1)
    return leader


def change(first: int, last: int, state: RecordState = ACKNOWLEDGED, count: int = 1) -> StateRange:
    return StateRange(first, last, state, count, Cause.ACCEPT, "member-1")


@pytest.mark.parametrize(
    ("changes", "states"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([change(0, 4)], [change(0, 4)], id="at the end of the image"),
        pytest.param(
            [change(5, 9)], [StateRange(0, 4, AVAILABLE, 0), change(5, 9)], id="above it, with a filler"
        ),
        pytest.param(
            [change(2, 3), change(7, 8)],
            [StateRange(0, 1, AVAILABLE, 0), change(2, 3), StateRange(4, 6, AVAILABLE, 0), change(7, 8)],
            id="fillers between",
        ),
        pytest.param([change(0, 4), change(5, 9)], [change(0, 9)], id="equal neighbours are one"),
        pytest.param(
            [change(0, 4), change(5, 9, count=2)],
            [change(0, 4), change(5, 9, count=2)],
            id="neighbours that differ are not",
        ),
        pytest.param(
            [change(7, 8), change(1, 2)],
            [StateRange(0, 0, AVAILABLE, 0), change(1, 2), StateRange(3, 6, AVAILABLE, 0), change(7, 8)],
            id="of two decisions, the later one lower",
        ),
        pytest.param(
            [change(0, 9, AVAILABLE), change(3, 5)],
            [change(0, 2, AVAILABLE), change(3, 5), change(6, 9, AVAILABLE)],
            id="the later one wins",
        ),
    ],
)
def test_delta_of_changes_over_records_never_recorded(
    changes: list[StateRange], states: list[StateRange]
) -> None:
    leader = held(5, 5)
    assert delta_states(leader.image, leader.partition, changes) == states


def test_below_the_end_of_the_image_a_change_needs_no_filler() -> None:
    leader = held(5, 5)
    leader.acknowledge(9, 9, ACCEPT)
    assert delta_states(leader.image, leader.partition, [change(3, 4)]) == [change(3, 4)]


def test_filler_shows_live_state_with_acquired_as_available_one_delivery_less() -> None:
    leader = held(2, 2, 2, 2)
    leader.acknowledge(7, 7, ACCEPT)
    leader.acknowledge(2, 3, RELEASE)
    leader.acknowledge(4, 5, GAP)
    leader.fetch("member-2")
    assert leader.partition.durable_ranges(1, 100) == [
        StateRange(1, 1, AVAILABLE, 0),
        StateRange(2, 3, AVAILABLE, 1),
        StateRange(4, 5, ARCHIVED, 1),
        StateRange(6, 6, AVAILABLE, 0),
        StateRange(7, 7, ACKNOWLEDGED, 1),
    ]


def test_filler_shows_a_record_with_a_change_pending_as_it_was() -> None:
    leader = held(5, 5)
    leader.decide(0, 4, ACCEPT)
    assert leader.partition.durable_ranges(0, 9) == [StateRange(0, 9, AVAILABLE, 0)]


def test_a_hole_that_the_spso_has_passed_is_filled_as_archived() -> None:
    leader = Leader().produce(5, 5)
    del leader.log[0]
    leader.fetch()
    leader.acknowledge(5, 9, ACCEPT)
    assert leader.deltas[-1].states == [
        StateRange(0, 4, ARCHIVED, 0),
        StateRange(5, 9, ACKNOWLEDGED, 1, Cause.ACCEPT, "member-1"),
    ]
    assert leader.image.start_offset == 10


def test_durable_ranges_end_with_the_flight() -> None:
    leader = held(5)
    assert leader.partition.durable_ranges(5, 10) == []
    assert leader.partition.durable_ranges(3, 10) == [StateRange(3, 4, AVAILABLE, 0)]
