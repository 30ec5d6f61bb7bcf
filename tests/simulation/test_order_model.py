"""The answers that the model of the order of keys calls a broken promise."""

from __future__ import annotations

from random import Random

import pytest

from tests.conformance.share_member import ACCEPT, REJECT, RELEASE
from tests.simulation.keyed_records import KeyedRecords, OrderSettings
from tests.simulation.model import GroupModel, Lease, ShareModel, Violation
from tests.simulation.order_model import Answer, OrderModel

LOCK_MS = 1000
WITHOUT_KEY = 7


class Stage:
    """Records of one key, whose values are their offsets; those from 3 to 6 are one large batch."""

    def __init__(self, run_max: int) -> None:
        keys = KeyedRecords(Random(0), OrderSettings(("group",), 1, compacts=True, hashed_records_max=3))
        keys.records([b"0", b"1", b"2"])
        keys.records([b"3", b"4", b"5", b"6"])
        self.share = ShareModel("group/t-0")
        group = GroupModel(5, LOCK_MS)
        group.key_run_max.change(run_max)
        group.key_run_max.settle(run_max, -1)
        self.order = OrderModel(self.share, group, keys, lambda: 0, lambda: 0)

    def take(self, member_id: str, *offsets: int, at_ms: int) -> None:
        """A member gets records with the answer to a request that it sends at this time."""
        lease = Lease(member_id, at_ms + LOCK_MS, lambda: True)
        self.share.leases |= dict.fromkeys(offsets, lease)
        values: dict[int, bytes | None] = {offset: b"%d" % offset for offset in offsets}
        self.order.delivered(Answer(member_id, list(offsets), values, at_ms, at_ms))

    def acknowledge(self, member_id: str, ack_type: int, *offsets: int, at_ms: int) -> list[int]:
        """It succeeds; the records for which that is in force."""
        self.share.give_up(member_id, offsets)
        sending = self.order.sent(member_id, dict.fromkeys(offsets, (ack_type, 1)), at_ms)
        return list(self.order.confirmed(sending))


def test_two_members_do_not_hold_one_key() -> None:
    stage = Stage(1)
    stage.take("a", 0, at_ms=0)
    with pytest.raises(Violation, match="hold"):
        stage.take("b", 1, at_ms=1)


def test_a_member_holds_no_more_than_the_limit() -> None:
    Stage(2).take("a", 0, 1, at_ms=0)
    with pytest.raises(Violation, match="more than 2"):
        Stage(2).take("a", 0, 1, 2, at_ms=0)


def test_an_earlier_record_does_not_come_after_a_later_one() -> None:
    stage = Stage(1)
    stage.take("a", 1, at_ms=0)
    with pytest.raises(Violation, match="0 is delivered after 1"):
        stage.take("b", 0, at_ms=2 * LOCK_MS)


def test_a_record_of_the_same_run_may_come_again() -> None:
    stage = Stage(2)
    stage.take("a", 0, 1, at_ms=0)
    assert stage.acknowledge("a", ACCEPT, 1, at_ms=1) == [1]
    stage.take("b", 0, at_ms=2 * LOCK_MS)


def test_a_record_behind_a_released_one_is_not_accepted_later() -> None:
    stage = Stage(2)
    stage.take("a", 0, 1, at_ms=0)
    stage.acknowledge("a", RELEASE, 0, at_ms=1)
    with pytest.raises(Violation, match="was released"):
        stage.acknowledge("a", ACCEPT, 1, at_ms=2)


def test_a_record_is_not_accepted_after_the_lock_of_an_earlier_one_has_expired() -> None:
    stage = Stage(2)
    stage.take("a", 0, 1, at_ms=0)
    stage.order.renewed("a", [1], LOCK_MS // 2, LOCK_MS // 2)
    with pytest.raises(Violation, match="has expired"):
        stage.acknowledge("a", ACCEPT, 1, at_ms=LOCK_MS + 1)


def test_an_earlier_record_whose_last_delivery_ends_is_given_up_and_not_taken_back() -> None:
    stage = Stage(2)
    stage.take("a", 0, 1, at_ms=0)
    stage.share.delivered[0] = 5, 0.0
    stage.order.renewed("a", [1], LOCK_MS // 2, LOCK_MS // 2)
    assert stage.acknowledge("a", ACCEPT, 1, at_ms=LOCK_MS + 1) == [1]


def test_other_records_are_not_held_beside_a_large_batch() -> None:
    stage = Stage(1)
    stage.take("a", 2, at_ms=0)
    with pytest.raises(Violation, match="delivered alone"):
        stage.take("b", 3, 4, 5, 6, at_ms=1)


def test_a_reset_is_forgotten_history() -> None:
    stage = Stage(1)
    stage.take("a", 1, at_ms=0)
    stage.share.reset()
    stage.take("b", 0, at_ms=1)


def test_a_success_proves_nothing_if_the_record_came_before_a_reset() -> None:
    stage = Stage(2)
    stage.take("a", 0, 1, at_ms=0)
    stage.share.reset()
    assert stage.acknowledge("a", REJECT, 1, at_ms=1) == []


def test_a_success_proves_nothing_if_the_answer_with_the_record_came_after_a_reset() -> None:
    """The model does not note such an answer, so an earlier record of the run may be released beside it."""
    stage = Stage(2)
    assert stage.acknowledge("a", REJECT, 1, at_ms=0) == []


def test_the_acknowledgement_of_a_record_without_a_key_is_in_force() -> None:
    stage = Stage(2)
    stage.take("a", 0, WITHOUT_KEY, at_ms=0)
    assert stage.acknowledge("a", REJECT, WITHOUT_KEY, at_ms=1) == [WITHOUT_KEY]


def test_a_record_waits_while_one_of_its_key_waits_for_a_transaction() -> None:
    stage = Stage(1)
    stage.take("a", 0, at_ms=0)
    assert stage.order.sent_in_transaction("a", {0: (ACCEPT, 1)}) == set()
    answer = Answer("b", [1], {1: b"1"}, 2, 2)
    stage.order.check_waiting(answer, {})
    with pytest.raises(Violation, match="1 is delivered while the acknowledgement of 0"):
        stage.order.check_waiting(answer, {0: 1})


def test_all_others_wait_for_a_large_batch_that_waits_for_a_transaction() -> None:
    stage = Stage(1)
    stage.take("a", 3, 4, at_ms=0)
    stage.order.sent_in_transaction("a", {3: (ACCEPT, 1)})
    with pytest.raises(Violation, match="0 is delivered while the acknowledgement of 3"):
        stage.order.check_waiting(Answer("b", [0], {0: b"0"}, 2, 2), {3: 1})


def test_a_member_may_lose_the_records_behind_one_that_waits_for_a_transaction() -> None:
    stage = Stage(3)
    stage.take("a", 0, 1, 2, at_ms=0)
    assert stage.order.sent_in_transaction("a", {0: (ACCEPT, 1), 1: (ACCEPT, 1)}) == {2}


def test_a_success_proves_nothing_if_another_member_may_have_finished_the_record() -> None:
    stage = Stage(2)
    stage.take("a", 0, 1, at_ms=0)
    stage.acknowledge("a", RELEASE, 0, at_ms=1)
    stage.take("b", 0, 1, at_ms=2)
    assert stage.acknowledge("b", ACCEPT, 0, 1, at_ms=3) == [0, 1]
    assert stage.acknowledge("a", ACCEPT, 1, at_ms=4) == [1]


def test_a_success_proves_nothing_if_an_administrator_may_have_archived_the_record() -> None:
    stage = Stage(2)
    stage.take("a", 0, 1, at_ms=0)
    stage.acknowledge("a", RELEASE, 0, at_ms=1)
    stage.share.administered[1] = 0
    assert stage.acknowledge("a", ACCEPT, 1, at_ms=2) == [1]


def test_a_member_loses_the_records_of_its_own_run_if_the_answer_to_another_member_comes_late() -> None:
    stage = Stage(2)
    stage.take("b", 0, 1, at_ms=2 * LOCK_MS)
    stage.take("a", 0, 1, at_ms=0)
    assert stage.order.sent("b", {0: (RELEASE, 2), 1: (ACCEPT, 2)}, 2 * LOCK_MS).behind == {1}
