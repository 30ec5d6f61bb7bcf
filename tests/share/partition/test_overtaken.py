"""Held records that are taken back, because a record before them of the same key is delivered again."""

from __future__ import annotations

import pytest

from barnabas.protocol.record_keys import KeyHashes
from barnabas.share.partition.decision import Outcome
from barnabas.share.partition.key_order import BatchKeys
from tests.share.partition.leader import ACCEPT, BATCH_OPTIMIZED, LIMITS, RELEASE, Leader

RUN = LIMITS._replace(key_run_max=3)


class OrderedLeader(Leader):
    """Its log is one batch of three records of one key; without hashes it is delivered alone."""

    def __init__(self, keys: KeyHashes | None) -> None:
        super().__init__(limits=RUN)
        self.produce(3)
        self._keys = [BatchKeys(0, 2, keys)]

    def take(self, member_id: str) -> dict[int, int]:
        """The delivery count of each acquired record."""
        plan = self.partition.plan_acquire(500, self.limits, BATCH_OPTIMIZED)
        acquired = self.partition.acquire(
            plan,
            member_id,
            self.log if plan.reads else [],
            records_max=500,
            batch_size=500,
            acquire_mode=BATCH_OPTIMIZED,
            limits=self.limits,
            now_ms=self.now_ms,
            keys=self._keys,
        ).acquired
        return {offset: count for first, last, count in acquired for offset in range(first, last + 1)}


@pytest.fixture(params=["hashed", "delivered alone"])
def leader(request: pytest.FixtureRequest) -> OrderedLeader:
    keys = KeyHashes([0, 1, 2], [7, 7, 7]) if request.param == "hashed" else None
    leader = OrderedLeader(keys)
    assert leader.take("member-1") == {0: 1, 1: 1, 2: 1}
    return leader


def test_a_release_takes_back_the_later_records_of_the_run(leader: OrderedLeader) -> None:
    assert leader.acknowledge(0, 0, RELEASE).released
    assert leader.take("member-2") == {0: 2, 1: 1, 2: 1}


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


def test_a_failed_acknowledgement_without_a_release_before_it_changes_nothing(
    leader: OrderedLeader,
) -> None:
    accepted = leader.decide(2, 2, ACCEPT)
    assert leader.partition.abort(accepted) == Outcome()
    assert leader.take("member-2") == {}
    leader.acknowledge(0, 2, ACCEPT)
    assert leader.partition.spso == 3
