"""Changes by an administrator: release and archive. The models have them among random operations, too."""

from __future__ import annotations

from uuid import UUID

import pytest

from barnabas.protocol.delivery_state import Cause, LetterPlace, StateRange
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.record_inspection import ALTERED_OFFSETS_MAX, RecordAction
from barnabas.share.partition.decision import Decision
from tests.share.partition.leader import (
    ACCEPT,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    LIMITS,
    RECORD_LIMIT,
    REJECT,
    RELEASE,
    Leader,
)

RELEASED, ARCHIVE, DEAD_LETTER = RecordAction
PLACE = LetterPlace(topic_id=UUID(int=7), log_end_offset=5)


def held(*sizes: int) -> Leader:
    leader = Leader().produce(*sizes)
    leader.fetch()
    return leader


def administered(leader: Leader, action: RecordAction, first_offset: int, last_offset: int) -> Decision:
    """The decision by the group's present limits."""
    return leader.partition.administer(action, first_offset, last_offset, leader.limits)


def refusal(leader: Leader, action: RecordAction, first_offset: int, last_offset: int) -> ApiError:
    """The error, after which all states are as before."""
    before = leader.states()
    with pytest.raises(ApiError) as raised:
        administered(leader, action, first_offset, last_offset)
    assert leader.states() == before
    return raised.value


class TestRelease:
    def test_ends_the_lock_immediately_and_names_the_holder(self) -> None:
        leader = held(5)
        decision = administered(leader, RELEASED, 1, 2)
        assert decision.changes == [StateRange(1, 2, AVAILABLE, 1, Cause.ADMIN, "member-1")]
        assert decision.outcome.released
        assert leader.fetch("member-2") == [(1, 2, 2)], "before it is recorded"
        leader.record(decision)
        with pytest.raises(ApiError):
            leader.decide(0, 4, ACCEPT)

    def test_makes_a_record_at_the_delivery_limit_available_once_more(self) -> None:
        leader = held(1)
        leader.limits = LIMITS._replace(delivery_count_max=1)
        leader.record(administered(leader, RELEASED, 0, 0))
        assert leader.fetch() == [(0, 0, 2)]
        leader.acknowledge(0, 0, RELEASE)
        assert leader.partition.spso == 1, "the holder's release ends it"

    def test_refuses_records_that_no_member_holds(self) -> None:
        leader = held(3)
        leader.acknowledge(1, 1, RELEASE)
        error = refusal(leader, RELEASED, 0, 2)
        assert error.code is ErrorCode.invalid_record_state
        assert error.message == "The record at 1 is available, so no member holds it."

    def test_skips_control_offsets(self) -> None:
        leader = Leader().produce(2).control(2).produce(2)
        leader.fetch()
        decision = administered(leader, RELEASED, 1, 4)
        assert decision.changes == [StateRange(1, 4, AVAILABLE, 1, Cause.ADMIN, "member-1")]
        assert leader.fetch("member-2") == [(1, 1, 2), (4, 4, 2)]


class TestArchive:
    def test_ends_held_and_available_records_and_the_start_offset_passes_them_when_recorded(self) -> None:
        leader = held(5)
        leader.acknowledge(1, 2, RELEASE)
        decision = administered(leader, ARCHIVE, 0, 3)
        assert sorted(decision.changes) == [
            StateRange(0, 0, ARCHIVED, 1, Cause.ADMIN, "member-1"),
            StateRange(1, 2, ARCHIVED, 1, Cause.ADMIN, None),
            StateRange(3, 3, ARCHIVED, 1, Cause.ADMIN, "member-1"),
        ]
        assert leader.partition.spso == 0
        assert leader.fetch("member-2") == []
        assert leader.record(decision).spso_moved
        assert leader.partition.spso == 4

    def test_is_recorded_with_the_next_change_if_its_write_fails(self) -> None:
        leader = held(3)
        leader.partition.abort(administered(leader, ARCHIVE, 0, 0))
        assert leader.partition.has_unrecorded
        leader.acknowledge(1, 1, ACCEPT)
        assert leader.partition.spso == 2
        assert leader.deltas[-1].states[0] == StateRange(0, 0, ARCHIVED, 1, Cause.ADMIN, "member-1")

    def test_leaves_unread_records_around_it_as_they_were(self) -> None:
        leader = Leader(states=(StateRange(0, 8, AVAILABLE, 0),)).produce(3, 3, 3)
        leader.record(administered(leader, ARCHIVE, 4, 4))
        assert leader.fetch(records_max=2, mode=RECORD_LIMIT) == [(0, 1, 1)]
        assert leader.fetch(records_max=500) == [(2, 2, 1), (3, 3, 1), (5, 8, 1)]

    def test_of_unread_records_may_reach_into_the_batch_behind_them(self) -> None:
        states = (StateRange(0, 2, AVAILABLE, 0), StateRange(3, 5, AVAILABLE, 1))
        leader = Leader(states=states).produce(3, 3)
        leader.record(administered(leader, ARCHIVE, 2, 3))
        leader.record(leader.partition.decide_log_start(3))
        assert leader.partition.spso == 4
        assert leader.fetch() == [(4, 5, 2)]

    def test_of_the_first_unread_record_moves_the_start_offset(self) -> None:
        leader = Leader(states=(StateRange(0, 8, AVAILABLE, 0),)).produce(9)
        leader.record(administered(leader, ARCHIVE, 0, 0))
        assert leader.partition.spso == 1
        assert leader.fetch() == [(1, 8, 1)]

    def test_refuses_a_record_whose_acknowledgement_is_being_recorded(self) -> None:
        leader = held(3)
        decision = leader.decide(1, 1, ACCEPT)
        error = refusal(leader, ARCHIVE, 0, 2)
        assert error.code is ErrorCode.invalid_record_state
        assert error.message == "Another change of the record at 1 is being recorded: try again."
        leader.record(decision)
        assert refusal(leader, ARCHIVE, 0, 2).message == "The record at 1 is final: it is acknowledged."


@pytest.mark.parametrize("action", RecordAction)
class TestRanges:
    def test_records_outside_of_the_window_are_refused(self, action: RecordAction) -> None:
        leader = held(3).produce(2)
        leader.acknowledge(0, 0, ACCEPT)
        passed = refusal(leader, action, 0, 1)
        assert passed.code is ErrorCode.invalid_record_state
        assert passed.message == "The record at 0 is final: it lies before the group's start offset 1."
        new = refusal(leader, action, 2, 3)
        assert new.code is ErrorCode.invalid_record_state
        assert new.message is not None
        assert "has not acquired the record at 3 yet" in new.message

    def test_before_the_group_has_begun_every_record_is_new(self, action: RecordAction) -> None:
        error = refusal(Leader(-1), action, 0, 0)
        assert error.code is ErrorCode.invalid_record_state

    @pytest.mark.parametrize(
        ("first_offset", "last_offset"), [(1, 0), (-1, 0), (0, ALTERED_OFFSETS_MAX), (2, 3)]
    )
    def test_malformed_ranges_are_refused(
        self, action: RecordAction, first_offset: int, last_offset: int
    ) -> None:
        leader = Leader().produce(2).control(2).produce(1)
        leader.fetch()
        assert refusal(leader, action, first_offset, last_offset).code is ErrorCode.invalid_request

    def test_the_longest_range_is_allowed(self, action: RecordAction) -> None:
        leader = held(1)
        error = refusal(leader, action, 0, ALTERED_OFFSETS_MAX - 1)
        assert error.code is ErrorCode.invalid_record_state


class TestDeadLetters:
    def test_are_refused_without_a_place_for_them(self) -> None:
        error = refusal(held(1), DEAD_LETTER, 0, 0)
        assert error.code is ErrorCode.invalid_config

    def test_begin_for_held_and_available_records_with_the_administrator_as_their_reason(self) -> None:
        leader = held(3)
        leader.limits = LIMITS._replace(letter_place=PLACE)
        leader.acknowledge(1, 1, RELEASE)
        decision = administered(leader, DEAD_LETTER, 0, 2)
        letter = PLACE._replace(reason=Cause.ADMIN)
        assert sorted(decision.changes) == [
            StateRange(0, 0, ARCHIVING, 1, Cause.ADMIN, "member-1", letter),
            StateRange(1, 1, ARCHIVING, 1, Cause.ADMIN, None, letter),
            StateRange(2, 2, ARCHIVING, 1, Cause.ADMIN, "member-1", letter),
        ]
        assert sorted(one.base_offset for one in decision.letters) == [0, 1, 2]
        leader.record(decision)
        assert leader.fetch("member-2") == []
        assert leader.partition.spso == 0, "until the letters are written"
        on_its_way = refusal(leader, ARCHIVE, 1, 1)
        assert on_its_way.message == "The record at 1 is on its way to a dead letter."

    def test_that_are_written_archive_no_other_records_and_each_once(self) -> None:
        leader = held(3)
        leader.limits = LIMITS._replace(letter_place=PLACE)
        leader.acknowledge(1, 1, REJECT)
        written = leader.partition.decide_archived([(0, 2)], Cause.DEAD_LETTER)
        assert [(one.base_offset, one.last_offset) for one in written.changes] == [(1, 1)]
        assert leader.partition.decide_archived([(0, 2)], Cause.DEAD_LETTER).is_empty
