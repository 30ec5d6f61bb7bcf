"""The ends of acquisition locks: expiry, session end, and their effect if they cannot be recorded."""

from __future__ import annotations

import pytest

from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.delivery_state import Cause, RecordState, StateRange
from barnabas.protocol.errors import ApiError, ErrorCode
from tests.share.partition.leader import (
    ACCEPT,
    ACKNOWLEDGED,
    ARCHIVED,
    AVAILABLE,
    LIMITS,
    RELEASE,
    Leader,
)


def held(*sizes: int) -> Leader:
    leader = Leader().produce(*sizes)
    leader.fetch(batch_size=1)
    return leader


def test_lock_expires_at_its_deadline_and_not_before() -> None:
    leader = held(10)
    assert leader.partition.next_deadline_ms() == 1_000
    assert leader.expire(999).is_empty
    decision = leader.expire(1_000)
    assert decision.changes == [StateRange(0, 9, AVAILABLE, 1, Cause.LOCK_EXPIRED, "member-1")]
    assert decision.outcome.released
    assert leader.partition.next_deadline_ms() is None


def test_next_deadline_is_a_lower_bound_made_exact_by_the_next_expiry() -> None:
    leader = held(5)
    leader.now_ms = 500
    leader.produce(5)
    leader.fetch("member-2")
    leader.acknowledge(0, 4, ACCEPT)
    assert leader.partition.next_deadline_ms() == 1_000
    assert leader.expire(1_000).is_empty
    assert leader.partition.next_deadline_ms() == 1_500
    leader.acknowledge(5, 9, ACCEPT, member_id="member-2")
    assert leader.partition.next_deadline_ms() is None, "nothing in flight, nothing to wait for"


def test_lock_duration_is_read_when_the_lock_starts() -> None:
    leader = held(5)
    leader.limits = LIMITS._replace(lock_duration_ms=5_000)
    leader.produce(5)
    leader.fetch()
    assert leader.expire(1_000).changes == [StateRange(0, 4, AVAILABLE, 1, Cause.LOCK_EXPIRED, "member-1")]
    assert leader.partition.next_deadline_ms() == 5_000


def test_records_of_one_batch_acquired_at_different_times_expire_by_themselves() -> None:
    leader = held(10)
    leader.now_ms = 400
    leader.acknowledge(3, 5, RELEASE)
    leader.fetch("member-2")
    assert leader.expire(1_000).changes == [
        StateRange(0, 2, AVAILABLE, 1, Cause.LOCK_EXPIRED, "member-1"),
        StateRange(6, 9, AVAILABLE, 1, Cause.LOCK_EXPIRED, "member-1"),
    ]
    assert leader.expire(1_400).changes == [StateRange(3, 5, AVAILABLE, 2, Cause.LOCK_EXPIRED, "member-2")]


def test_neighbouring_batches_that_expire_alike_are_one_change() -> None:
    assert held(5, 5, 5).expire(1_000).changes == [
        StateRange(0, 14, AVAILABLE, 1, Cause.LOCK_EXPIRED, "member-1")
    ]


@pytest.mark.parametrize("ends_by", ["expiry", "session end"])
def test_the_end_of_the_last_delivery_archives_and_moves_the_spso(ends_by: str) -> None:
    leader = held(5)
    leader.limits = LIMITS._replace(delivery_count_max=2)
    leader.acknowledge(0, 4, RELEASE)
    leader.fetch()
    decision = leader.expire(1_000) if ends_by == "expiry" else leader.release_member()
    assert decision.changes == [StateRange(0, 4, ARCHIVED, 2, Cause.DELIVERY_LIMIT, "member-1")]
    assert not decision.outcome.released
    assert leader.partition.spso == 0, "not before it is recorded"
    assert leader.record(decision).spso_moved
    assert (leader.partition.spso, leader.partition.in_flight_batch_count) == (5, 0)


def test_released_records_are_available_before_the_release_is_recorded() -> None:
    leader = held(5)
    decision = leader.expire(1_000)
    assert leader.fetch("member-2") == [(0, 4, 2)]
    leader.record(decision)
    assert leader.states() == [(0, 4, AVAILABLE, 1)]
    leader.acknowledge(0, 4, ACCEPT, member_id="member-2")
    assert leader.partition.spso == 5


def test_late_acknowledgement_after_expiry_is_refused() -> None:
    leader = held(5)
    leader.record(leader.expire(1_000))
    with pytest.raises(ApiError) as raised:
        leader.decide(0, 4, ACCEPT)
    assert raised.value.code is ErrorCode.invalid_record_state
    leader.fetch("member-2")
    with pytest.raises(ApiError):
        leader.decide(0, 4, ACCEPT)


def test_session_end_releases_the_member_s_records_alone_and_keeps_the_counts() -> None:
    leader = held(5)
    leader.produce(5)
    leader.fetch("member-2")
    leader.acknowledge(1, 1, ACCEPT)
    decision = leader.release_member("member-1")
    assert decision.changes == [
        StateRange(0, 0, AVAILABLE, 1, Cause.SESSION_ENDED, "member-1"),
        StateRange(2, 4, AVAILABLE, 1, Cause.SESSION_ENDED, "member-1"),
    ]
    leader.record(decision)
    assert leader.fetch("member-3") == [(0, 0, 2), (2, 4, 2)]
    assert leader.acknowledge(5, 9, ACCEPT, member_id="member-2") == (False, False)


def test_session_end_without_records_decides_nothing() -> None:
    assert Leader().release_member().is_empty
    leader = held(5)
    assert leader.release_member("member-2").is_empty
    leader.acknowledge(0, 4, ACCEPT)
    assert leader.release_member("member-1").is_empty


@pytest.mark.parametrize("ack_type", [ACCEPT, RELEASE])
def test_expiry_passes_over_a_record_whose_acknowledgement_is_being_recorded(ack_type: int) -> None:
    leader = held(5)
    decision = leader.decide(0, 4, ack_type)
    assert leader.expire(1_000).is_empty
    leader.record(decision)
    state = (0, 4, AVAILABLE, 1)
    assert leader.states() == ([] if ack_type == ACCEPT else [state])


@pytest.mark.parametrize(("delivery_count_max", "state"), [(5, AVAILABLE), (1, ARCHIVED)])
def test_a_lock_that_ended_during_a_failed_write_ends_then(
    delivery_count_max: int, state: RecordState
) -> None:
    leader = held(5)
    leader.limits = LIMITS._replace(delivery_count_max=delivery_count_max)
    decision = leader.decide(0, 4, ACCEPT)
    assert leader.expire(1_500).is_empty
    leader.partition.abort(decision)
    assert leader.partition.next_deadline_ms() == 1_000
    assert [change.state for change in leader.expire(1_500).changes] == [state]


def test_a_session_that_ended_during_a_failed_write_releases_then() -> None:
    leader = held(5)
    decision = leader.decide(0, 4, ACCEPT)
    leader.now_ms = 300
    assert leader.release_member().is_empty
    leader.partition.abort(decision)
    assert leader.partition.next_deadline_ms() == 300
    assert leader.expire(300).outcome.released
    assert leader.fetch("member-2") == [(0, 4, 2)]


def test_an_expiry_that_cannot_be_recorded_stands_and_rides_on_the_next_decision() -> None:
    leader = held(5, 5)
    leader.partition.abort(leader.release_member())
    assert leader.partition.has_unrecorded
    assert leader.fetch("member-2", records_max=5) == [(0, 4, 2)]
    decision = leader.decide(0, 4, ACCEPT, member_id="member-2")
    assert decision.changes == [
        StateRange(5, 9, AVAILABLE, 1, Cause.SESSION_ENDED, "member-1"),
        StateRange(0, 4, ACKNOWLEDGED, 2, Cause.ACCEPT, "member-2"),
    ]
    assert leader.partition.has_unrecorded, "a pending change waits for the end of its write"
    leader.record(decision)
    assert [delta.states for delta in leader.deltas] == [
        [
            StateRange(0, 4, ACKNOWLEDGED, 2, Cause.ACCEPT, "member-2"),
            StateRange(5, 9, AVAILABLE, 1, Cause.SESSION_ENDED, "member-1"),
        ]
    ]
    assert leader.expire(1_000).is_empty
    assert not leader.partition.has_unrecorded, "it has been overtaken"


def test_changes_in_a_failed_decision_are_in_the_next_one_again() -> None:
    leader = held(5, 5)
    leader.partition.abort(leader.release_member())
    leader.fetch("member-2", records_max=5)
    leader.partition.abort(leader.decide(0, 4, ACCEPT, member_id="member-2"))
    leader.record(leader.decide(0, 4, RELEASE, member_id="member-2"))
    recorded = [StateRange(0, 4, AVAILABLE, 2), StateRange(5, 9, AVAILABLE, 1)]
    assert leader.image.ranges == recorded
    assert leader.expire(0).is_empty
    leader.record(leader.release_member("member-2"))
    assert leader.image.ranges == recorded, "an overtaken change is not recorded late"
    assert not leader.partition.has_unrecorded


def test_an_archiving_that_cannot_be_recorded_holds_the_spso_until_it_is() -> None:
    leader = held(5)
    leader.limits = LIMITS._replace(delivery_count_max=1)
    leader.partition.abort(leader.expire(1_000))
    assert leader.partition.spso == 0
    assert leader.states() == [(0, 4, ARCHIVED, 1)]
    again = leader.expire(1_001)
    assert again.changes == [StateRange(0, 4, ARCHIVED, 1, Cause.DELIVERY_LIMIT, "member-1")]
    leader.partition.abort(again)
    assert leader.record(leader.expire(1_002)).spso_moved
    assert leader.image.start_offset == leader.partition.spso == 5
    assert not leader.partition.has_unrecorded


def test_an_archiving_whose_write_failed_holds_the_spso_though_others_complete() -> None:
    leader = held(5)
    leader.limits = LIMITS._replace(delivery_count_max=1)
    leader.now_ms = 500
    leader.produce(5)
    leader.fetch("member-2")
    acceptance = leader.decide(5, 9, ACCEPT, member_id="member-2")
    leader.partition.abort(leader.expire(1_000))
    assert not leader.record(acceptance).spso_moved
    assert leader.record(leader.expire(1_001)).spso_moved
    assert leader.partition.spso == leader.image.start_offset == 10


def test_a_late_record_of_an_expiry_never_overwrites_later_changes() -> None:
    leader = held(5)
    expiry = leader.expire(1_000)
    leader.fetch("member-2")
    acceptance = leader.decide(0, 4, ACCEPT, member_id="member-2")
    leader.partition.abort(expiry)
    leader.produce(5)
    leader.fetch("member-3")
    release = leader.decide_batches(AckBatch(5, 9, (RELEASE,)), member_id="member-3")
    assert [change.base_offset for change in release.changes] == [5]
    leader.record(acceptance)
    leader.record(release)
    assert leader.image.start_offset == 5
    assert leader.expire(1_001).is_empty
