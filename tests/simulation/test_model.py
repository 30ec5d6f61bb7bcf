"""The model's beliefs, and the answers that it calls a broken promise."""

from uuid import UUID

import pytest

from barnabas.protocol.identity import TopicIdPartition
from tests.conformance.share_member import ACCEPT, RELEASE
from tests.simulation.model import (
    GroupModel,
    Lease,
    Limit,
    Model,
    PartitionModel,
    ShareModel,
    Violation,
    Wait,
)

PARTITION = TopicIdPartition(UUID(int=1), 0)
THREE = Limit(3)


def lease(member_id: str, until_ms: float, *, is_in_force: bool = True) -> Lease:
    return Lease(member_id, until_ms, lambda: is_in_force)


def acquired(
    share: ShareModel,
    offset: int,
    count: int = 1,
    *,
    to: Lease,
    sent_ms: float = 0,
    now_ms: float = 1,
    limit: Limit = THREE,
) -> None:
    """A member acquires one record."""
    share.acquired([(offset, offset, count)], to, sent_ms=sent_ms, now_ms=now_ms, count_limit=limit)


@pytest.fixture
def share() -> ShareModel:
    return ShareModel("group/t-0")


@pytest.fixture
def records() -> PartitionModel:
    partition = PartitionModel("t-0", sent={b"a", b"b", b"c"})
    partition.confirm(4, [b"a", b"b"])
    return partition


@pytest.mark.parametrize(
    ("seen", "what"),
    [
        pytest.param([(4, b"b")], "confirmed was", id="another value than the confirmed one"),
        pytest.param([(7, b"x")], "no producer has sent", id="a value that was never sent"),
        pytest.param([(7, b"a")], "again", id="a value at another offset"),
        pytest.param([(5, b"b"), (4, b"a")], "came after", id="offsets that descend"),
    ],
)
def test_a_consumer_gets_the_values_sent_at_their_offsets(
    records: PartitionModel, seen: list[tuple[int, bytes]], what: str
) -> None:
    with pytest.raises(Violation, match=what):
        records.saw(seen)


DAY_MS = 86_400_000


def test_a_batch_may_be_in_the_log_twice_if_the_clock_lets_its_producer_expire_between_two_tries(
    records: PartitionModel,
) -> None:
    with records.repeating([b"c"], 1000):
        records.saw([(6, b"c")])
        records.set_clock(1000 + DAY_MS)
    records.confirm(7, [b"c"])
    assert records.confirmed[7] == b"c"


def test_a_try_after_the_clock_was_set_back_has_an_earlier_time_stamp(records: PartitionModel) -> None:
    with records.repeating([b"c"], 3_600_000):
        records.set_clock(0)
        records.saw([(6, b"c")])
        records.set_clock(DAY_MS)
    records.confirm(7, [b"c"])


@pytest.mark.parametrize("by_ms", [-DAY_MS, 3_600_000])
def test_a_batch_is_in_the_log_once_while_its_producer_has_not_expired(
    records: PartitionModel, by_ms: int
) -> None:
    with records.repeating([b"c"], 1000):
        records.saw([(6, b"c")])
        records.set_clock(1000 + by_ms)
    with pytest.raises(Violation, match="again"):
        records.confirm(7, [b"c"])


def test_a_batch_that_was_confirmed_before_the_clock_was_set_is_in_the_log_once(
    records: PartitionModel,
) -> None:
    with records.repeating([b"c"], 1000):
        records.confirm(6, [b"c"])
    records.set_clock(1000 + DAY_MS)
    with pytest.raises(Violation, match="again"):
        records.saw([(7, b"c")])


def test_a_recovered_log_holds_all_confirmed_records(records: PartitionModel) -> None:
    records.cut(6, may_lose_confirmed=False)
    with pytest.raises(Violation, match="5 was confirmed"):
        records.cut(5, may_lose_confirmed=False)


def test_without_a_promise_the_model_accepts_the_loss(records: PartitionModel) -> None:
    records.cut(5, may_lose_confirmed=True)
    records.confirm(5, [b"c"])
    assert records.confirmed == {4: b"a", 5: b"c"}
    assert records.generation == 1


def test_a_record_has_one_owner_at_a_time(share: ShareModel) -> None:
    acquired(share, 7, to=lease("a", 100))
    with pytest.raises(Violation, match="given to b while a holds it"):
        acquired(share, 7, 2, to=lease("b", 150), sent_ms=98, now_ms=99)


@pytest.mark.parametrize("end", ["time", "the holder", "something else"])
def test_a_lease_ends_by_time_by_its_holder_or_by_something_else(share: ShareModel, end: str) -> None:
    acquired(share, 7, to=lease("a", 100, is_in_force=end != "something else"))
    if end == "the holder":
        share.give_up("a", [7])
    now_ms = 101 if end == "time" else 50
    acquired(share, 7, 2, to=lease("b", 200), sent_ms=now_ms, now_ms=now_ms)


def test_an_accepted_record_is_not_delivered_again(share: ShareModel) -> None:
    share.confirm({7: (ACCEPT, 1)}, 10, 0)
    acquired(share, 7, to=lease("b", 5), sent_ms=9)  # It may have been acquired before.
    with pytest.raises(Violation, match="delivered again"):
        acquired(share, 7, to=lease("b", 50), sent_ms=11)


def test_a_confirmed_release_counts(share: ShareModel) -> None:
    share.confirm({7: (RELEASE, 2)}, 10, 0)
    with pytest.raises(Violation, match="a release at 2"):
        acquired(share, 7, 2, to=lease("b", 50), sent_ms=11)


def test_no_delivery_is_beyond_the_limit(share: ShareModel) -> None:
    acquired(share, 7, 3, to=lease("a", 0))
    with pytest.raises(Violation, match="count 4 of 3"):
        acquired(share, 7, 4, to=lease("a", 0))


def test_a_release_by_an_administrator_permits_one_delivery_beyond_a_limit_that_was_lowered(
    share: ShareModel,
) -> None:
    limit = Limit(10)
    acquired(share, 7, 2, to=lease("a", 0), sent_ms=10, limit=limit)
    limit.change(2)
    limit.settle(2, now_ms=20)
    acquired(share, 7, 3, to=lease("a", 0), sent_ms=30, limit=limit)
    share.begin_change([7], releases=True)
    share.end_change([7], 40, releases=True)
    acquired(share, 7, 4, to=lease("a", 0), sent_ms=50, limit=limit)
    with pytest.raises(Violation, match="count 5 of 2"):
        acquired(share, 7, 5, to=lease("a", 0), sent_ms=60, limit=limit)


def test_an_archiving_by_an_administrator_permits_no_delivery(share: ShareModel) -> None:
    acquired(share, 7, 3, to=lease("a", 0))
    share.begin_change([7], releases=False)
    with pytest.raises(Violation, match="count 4 of 3"):
        acquired(share, 7, 4, to=lease("a", 0), sent_ms=10)


def test_a_reset_by_an_administrator_is_forgotten_history(share: ShareModel) -> None:
    share.confirm({7: (ACCEPT, 1)}, 10, 0)
    share.forget()
    acquired(share, 7, to=lease("b", 50), sent_ms=11)
    assert share.generation == 1


def test_after_a_loss_of_power_facts_recorded_after_the_end_of_the_log_are_forgotten(
    share: ShareModel,
) -> None:
    share.confirm({7: (ACCEPT, 1)}, 10, log_end_offset=20)
    share.confirm({8: (ACCEPT, 1)}, 10, log_end_offset=30)
    share.cut(25)
    assert list(share.final) == [7]


def test_a_limit_may_be_old_or_new_until_the_change_is_confirmed() -> None:
    limit = Limit(5)
    limit.change(2)
    assert sorted(limit.values_since(100)) == [2, 5]
    limit.settle(2, now_ms=50)
    assert limit.values_since(51) == [2]
    assert sorted(limit.values_since(50)) == [2, 5]
    limit.unsettle()
    assert sorted(limit.values_since(100)) == [2, 5]


def test_nothing_is_promised_of_a_topic_that_is_being_deleted() -> None:
    model = Model(delivery_count_max=5, lock_duration_ms=1000)
    partition = model.partition(PARTITION)
    partition.confirm(0, [b"a"])
    model.forget_topic(PARTITION.topic_id)
    partition.confirm(1, [b"b"])
    assert partition.confirmed == {}


def test_a_released_record_is_not_delivered_before_it_is_due(share: ShareModel) -> None:
    share.waits[7] = Wait(until_ms=500, clock_changes=1)
    with pytest.raises(Violation, match="is due at 500"):
        share.acquired(
            [(7, 7, 2)], lease("b", 0), sent_ms=400, now_ms=499, count_limit=Limit(3), clock_changes=1
        )


@pytest.mark.parametrize(("now_ms", "clock_changes"), [(500, 1), (499, 2)])
def test_a_wait_ends_with_its_time_and_counts_until_the_clock_is_set(
    share: ShareModel, now_ms: int, clock_changes: int
) -> None:
    share.waits[7] = Wait(until_ms=500, clock_changes=1)
    share.acquired(
        [(7, 7, 2)],
        lease("b", 0),
        sent_ms=400,
        now_ms=now_ms,
        count_limit=Limit(3),
        clock_changes=clock_changes,
    )
    assert not share.waits


def test_the_shortest_delay_follows_from_the_settings_that_may_have_been_in_force() -> None:
    group = GroupModel(5, 1_000)
    assert group.delay_ms_min(3, 0) == 0
    group.backoff_ms.change(100)
    assert group.delay_ms_min(3, 0) == 0
    group.backoff_ms.settle(100, 50)
    assert (group.delay_ms_min(1, 51), group.delay_ms_min(3, 51)) == (80, 320)
