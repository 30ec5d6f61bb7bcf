"""In an order of keys, a record that is given up frees its key when that is recorded: a leader that starts
again before would deliver the record behind others of its key.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.protocol.delivery_state import Cause, LetterPlace, StateRange
from barnabas.protocol.record_inspection import RecordAction
from barnabas.protocol.record_keys import KeyHashes
from barnabas.share.partition.decision import Decision
from tests.share.partition.leader import ACCEPT, ARCHIVING, AVAILABLE, RELEASE
from tests.share.partition.ordered_leader import OrderedLeader

KEYS = KeyHashes([0, 1, 2], [7, 7, 7])


def expired_at_the_limit(leader: OrderedLeader) -> Decision:
    leader.limits = leader.limits._replace(delivery_count_max=1)
    leader.take("member-1")
    return leader.expire(leader.limits.lock_duration_ms)


def expired_into_a_dead_letter(leader: OrderedLeader) -> Decision:
    leader.limits = leader.limits._replace(letter_place=LetterPlace())
    return expired_at_the_limit(leader)


def archived_while_held(leader: OrderedLeader) -> Decision:
    leader.take("member-1")
    return leader.partition.administer(RecordAction.ARCHIVE, 0, 0, leader.limits)


def archived_while_available(leader: OrderedLeader) -> Decision:
    leader.take("member-1")
    leader.acknowledge(0, 0, RELEASE)
    return leader.partition.administer(RecordAction.ARCHIVE, 0, 0, leader.limits)


@pytest.mark.parametrize(
    "give_up",
    [expired_at_the_limit, expired_into_a_dead_letter, archived_while_held, archived_while_available],
)
def test_the_next_record_of_the_key_waits_until_the_end_is_recorded(
    give_up: Callable[[OrderedLeader], Decision],
) -> None:
    leader = OrderedLeader(KEYS, key_run_max=1)
    decision = give_up(leader)
    assert leader.take("member-2") == {}
    assert leader.record(decision).released
    assert leader.take("member-2") == {1: 1}


def test_an_end_that_could_not_be_recorded_keeps_the_key_until_the_next_attempt() -> None:
    leader = OrderedLeader(KEYS, key_run_max=1)
    leader.partition.abort(expired_at_the_limit(leader))
    assert leader.take("member-2") == {}
    assert leader.record(leader.expire(leader.now_ms + 1)).released
    assert leader.take("member-2") == {1: 1}


def test_a_later_record_of_a_key_that_is_given_up_does_not_hold_up_the_ones_before_it() -> None:
    leader = OrderedLeader(KEYS, key_run_max=1)
    leader.take("member-1")
    leader.acknowledge(0, 0, RELEASE)
    archived = leader.partition.administer(RecordAction.ARCHIVE, 1, 1, leader.limits)
    assert leader.take("member-1") == {0: 2}
    leader.acknowledge(0, 0, ACCEPT)
    assert leader.take("member-1") == {}
    leader.record(archived)
    assert leader.take("member-1") == {2: 1}


def test_a_record_that_is_given_up_before_its_key_is_known_keeps_it_as_well() -> None:
    leader = OrderedLeader(KEYS, key_run_max=1, states=(StateRange(0, 2, AVAILABLE, 1),))
    archived = leader.partition.administer(RecordAction.ARCHIVE, 0, 0, leader.limits)
    assert leader.take("member-1") == {}
    assert leader.record(archived).released
    assert leader.take("member-1") == {1: 2}


def test_a_record_on_its_way_to_a_dead_letter_keeps_no_key_while_the_end_of_that_is_being_recorded() -> None:
    states = (StateRange(0, 0, ARCHIVING, 1, condition=LetterPlace()), StateRange(1, 2, AVAILABLE, 1))
    leader = OrderedLeader(KEYS, key_run_max=1, states=states)
    archived = leader.partition.decide_archived([(0, 0)], Cause.DEAD_LETTER)
    assert leader.take("member-1") == {1: 2}
    leader.record(archived)
    leader.acknowledge(1, 1, ACCEPT)
    assert leader.take("member-1") == {2: 2}


def test_a_batch_that_is_delivered_alone_waits_for_the_recorded_end_of_its_records() -> None:
    leader = OrderedLeader(None)
    assert leader.take("member-1") == {0: 1, 1: 1, 2: 1}
    archived = leader.partition.administer(RecordAction.ARCHIVE, 0, 0, leader.limits)
    leader.acknowledge(1, 2, RELEASE)
    assert leader.take("member-2") == {}
    assert leader.record(archived).released
    assert leader.take("member-2") == {1: 2, 2: 1}
