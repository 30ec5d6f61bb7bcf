"""Held records that are taken back, because a record before them of the same key is delivered again."""

from __future__ import annotations

import pytest

from barnabas.protocol.record_keys import KeyHashes
from barnabas.share.partition.decision import Outcome
from barnabas.share.partition.overtaken import overtaken
from tests.share.partition.leader import ACCEPT, LIMITS, RELEASE
from tests.share.partition.ordered_leader import OrderedLeader

# pyright: reportPrivateUsage=false


@pytest.fixture(params=["hashed", "delivered alone"])
def leader(request: pytest.FixtureRequest) -> OrderedLeader:
    keys = KeyHashes([0, 1, 2], [7, 7, 7]) if request.param == "hashed" else None
    leader = OrderedLeader(keys)
    assert leader.take("member-1") == {0: 1, 1: 1, 2: 1}
    return leader


def test_a_release_takes_back_the_later_records_of_the_run(leader: OrderedLeader) -> None:
    assert leader.acknowledge(0, 0, RELEASE).released
    assert leader.take("member-2") == {0: 2, 1: 1, 2: 1}


def test_a_released_record_that_is_gone_from_the_log_takes_none_back(leader: OrderedLeader) -> None:
    in_flight = leader.partition.window
    assert overtaken(in_flight, [(0, 0)]) == [(1, 2)]
    leader.record(leader.partition.decide_log_start(1))
    assert overtaken(in_flight, [(0, 0)]) == []


def test_a_record_whose_acknowledgement_is_being_recorded_keeps_its_key(leader: OrderedLeader) -> None:
    accepted = leader.decide(2, 2, ACCEPT)
    leader.acknowledge(0, 0, RELEASE)
    assert leader.take("member-2") == {}
    assert leader.record(accepted).released
    assert leader.take("member-2") == {0: 2, 1: 1}


def test_a_record_whose_acknowledgement_failed_is_taken_back_with_the_others(leader: OrderedLeader) -> None:
    accepted = leader.decide(2, 2, ACCEPT)
    leader.acknowledge(0, 0, RELEASE)
    assert leader.partition.abort(accepted) == Outcome(released=True)
    assert leader.take("member-2") == {0: 2, 1: 1, 2: 1}


def test_a_record_whose_acknowledgement_failed_is_taken_back_by_a_release_decided_before(
    leader: OrderedLeader,
) -> None:
    accepted = leader.decide(2, 2, ACCEPT)
    released = leader.decide(0, 0, RELEASE)
    assert leader.partition.abort(accepted) == Outcome()
    assert leader.record(released).released
    assert leader.take("member-2") == {0: 2, 1: 1, 2: 1}


def test_a_record_that_is_taken_back_takes_others_back_if_the_released_one_is_gone_from_the_log(
    leader: OrderedLeader,
) -> None:
    accepted = leader.decide(2, 2, ACCEPT)
    released = leader.decide(0, 0, RELEASE)
    leader.partition.abort(accepted)
    leader.record(leader.partition.decide_log_start(1))
    leader.record(released)
    assert leader.take("member-2") == {1: 1, 2: 1}


def test_a_failed_acknowledgement_without_a_release_before_it_changes_nothing(
    leader: OrderedLeader,
) -> None:
    accepted = leader.decide(2, 2, ACCEPT)
    assert leader.partition.abort(accepted) == Outcome()
    assert leader.take("member-2") == {}
    leader.acknowledge(0, 2, ACCEPT)
    assert leader.partition.spso == 3


def test_records_that_are_taken_back_one_by_one_are_one_range_without_the_order() -> None:
    leader = OrderedLeader(KeyHashes([0, 1, 2], [7, 7, 7]))
    leader.take("member-1")
    accepted = [leader.decide(offset, offset, ACCEPT) for offset in (1, 2)]
    leader.acknowledge(0, 0, RELEASE)
    for decision in accepted:
        leader.partition.abort(decision)
    leader.limits = LIMITS
    assert leader.fetch("member-2") == [(0, 0, 2), (1, 2, 1)]
