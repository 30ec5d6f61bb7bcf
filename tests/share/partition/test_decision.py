"""Decisions: when they are empty, and which changes are joined."""

from __future__ import annotations

from barnabas.protocol.delivery_state import Cause, StateRange
from barnabas.share.partition.decision import Decision
from tests.share.partition.leader import ACKNOWLEDGED, ARCHIVED, ARCHIVING, AVAILABLE


def test_a_decision_is_empty_without_changes_and_start_offset() -> None:
    decision = Decision()
    assert decision.is_empty
    decision.start_offset = 0
    assert not decision.is_empty


def test_a_decision_knows_whether_it_gives_up_records() -> None:
    for state, gives_up in ((AVAILABLE, False), (ACKNOWLEDGED, False), (ARCHIVING, True), (ARCHIVED, True)):
        decision = Decision()
        decision.add_change(0, 0, state, 1, Cause.NONE, None)
        assert decision.gives_up is gives_up


def test_neighbours_are_joined_only_if_state_count_cause_and_member_are_equal() -> None:
    decision = Decision()
    for offset, (state, count, cause, member) in enumerate(
        [
            (ACKNOWLEDGED, 1, Cause.ACCEPT, "member-1"),
            (ACKNOWLEDGED, 1, Cause.ACCEPT, "member-1"),
            (ACKNOWLEDGED, 1, Cause.ACCEPT, "member-2"),
            (ACKNOWLEDGED, 2, Cause.ACCEPT, "member-2"),
            (AVAILABLE, 2, Cause.RELEASE, "member-2"),
            (AVAILABLE, 2, Cause.LOCK_EXPIRED, "member-2"),
        ]
    ):
        decision.add_change(offset, offset, state, count, cause, member)
    decision.add_change(7, 7, AVAILABLE, 2, Cause.LOCK_EXPIRED, "member-2")
    assert decision.changes == [
        StateRange(0, 1, ACKNOWLEDGED, 1, Cause.ACCEPT, "member-1"),
        StateRange(2, 2, ACKNOWLEDGED, 1, Cause.ACCEPT, "member-2"),
        StateRange(3, 3, ACKNOWLEDGED, 2, Cause.ACCEPT, "member-2"),
        StateRange(4, 4, AVAILABLE, 2, Cause.RELEASE, "member-2"),
        StateRange(5, 5, AVAILABLE, 2, Cause.LOCK_EXPIRED, "member-2"),
        StateRange(7, 7, AVAILABLE, 2, Cause.LOCK_EXPIRED, "member-2"),
    ]
