"""The simple assignor in groups that are counted quickly: 3 members on 7 partitions, 6 on 4, 7 on 3.

The numbers follow from two quotients of Apache Kafka's SimpleAssignor. Each partition has members divided by
partitions, rounded up, and all these places are shared out evenly among the members. Balance comes first: a
member keeps the partitions that it has only as far as its share allows. In the early text of KIP-932 every
member reads every partition (docs/decisions/0017).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from uuid import UUID

import pytest

from barnabas.coordinator.assignor.balance import quotas_of, sharing_of
from barnabas.coordinator.assignor.simple import AssignableTopic, MemberSpec, assign

TOPIC_ID = UUID(int=7)
Held = Mapping[str, tuple[int, ...]]
"""The partitions of each member."""

GROUPS = [
    # members, partitions, members of each partition, partitions of each member
    (3, 7, 1, [3, 2, 2]),
    (6, 4, 2, [2, 1, 1, 2, 1, 1]),
    (7, 3, 3, [2, 1, 1, 2, 1, 1, 1]),
]


def names(count: int) -> list[str]:
    return [f"member-{number}" for number in range(count)]


def assigned(members: Iterable[str], partition_count: int, previous: Held | None = None) -> Held:
    """One topic's partitions, assigned to members who hold `previous`."""
    held = previous or {}
    specs = {one: MemberSpec(["orders"], {TOPIC_ID: held[one]} if held.get(one) else {}) for one in members}
    topics = {"orders": AssignableTopic(TOPIC_ID, tuple(range(partition_count)))}
    result = assign(specs, topics, homogeneous=True)
    return {one: result[one].get(TOPIC_ID, ()) for one in specs}


def member_counts(held: Held, partition_count: int) -> list[int]:
    """How many members each partition has."""
    counts = Counter(partition for partitions in held.values() for partition in partitions)
    return [counts[partition] for partition in range(partition_count)]


def partition_counts(held: Held) -> list[int]:
    """How many partitions each member has."""
    return [len(partitions) for partitions in held.values()]


@pytest.mark.parametrize(("members", "partitions", "sharing", "shares"), GROUPS)
def test_each_partition_and_each_member_has_its_exact_number(
    members: int, partitions: int, sharing: int, shares: list[int]
) -> None:
    held = assigned(names(members), partitions)
    assert member_counts(held, partitions) == [sharing] * partitions
    assert partition_counts(held) == shares


def test_as_long_as_there_are_no_more_members_than_partitions_no_partition_is_shared() -> None:
    for partitions in range(1, 8):
        for members in range(1, partitions + 1):
            assert set(member_counts(assigned(names(members), partitions), partitions)) == {1}


@pytest.mark.parametrize(("members", "partitions", "sharing", "shares"), GROUPS)
def test_nothing_moves_while_the_members_stay(
    members: int, partitions: int, sharing: int, shares: list[int]
) -> None:
    held = assigned(names(members), partitions)
    assert assigned(held, partitions, held) == held


@pytest.mark.parametrize(
    ("members", "partitions", "sharing", "shares"),
    [(3, 7, 1, [2, 2, 2, 1]), (6, 4, 2, [2, 1, 1, 1, 1, 1, 1]), (7, 3, 3, [2, 1, 1, 1, 1, 1, 1, 1])],
)
def test_a_new_member_gets_its_share_and_the_others_only_give(
    members: int, partitions: int, sharing: int, shares: list[int]
) -> None:
    before = assigned(names(members), partitions)
    after = assigned([*before, "newcomer"], partitions, before)
    assert member_counts(after, partitions) == [sharing] * partitions
    assert partition_counts(after) == shares
    assert after["newcomer"]
    assert all(set(after[one]) <= set(before[one]) for one in before)


@pytest.mark.parametrize(
    ("members", "partitions", "shares"), [(3, 7, [4, 3]), (6, 4, [2, 2, 1, 2, 1]), (7, 3, [1] * 6)]
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_partitions_of_a_member_that_leaves_go_to_the_others(
    members: int, partitions: int, shares: list[int], place: int
) -> None:
    before = assigned(names(members), partitions)
    staying = [one for one in before if one != names(members)[place]]
    after = assigned(staying, partitions, before)
    assert set(member_counts(after, partitions)) == {sharing_of(members - 1, partitions)}
    assert partition_counts(after) == shares


@pytest.mark.parametrize(("members", "partitions"), [(3, 7), (6, 4)])
def test_each_member_that_stays_keeps_all_that_its_share_allows(members: int, partitions: int) -> None:
    """In both groups the partitions keep their number of members, so none has to give one up for that."""
    before = assigned(names(members), partitions)
    for leaver in before:
        staying = [one for one in before if one != leaver]
        after = assigned(staying, partitions, before)
        for one, share in zip(staying, quotas_of(members - 1, partitions), strict=True):
            assert len(set(before[one]) & set(after[one])) == min(len(before[one]), share)


@pytest.mark.parametrize(("members", "partitions", "sharing", "shares"), GROUPS)
def test_a_member_that_comes_back_finds_the_group_as_balanced_as_before(
    members: int, partitions: int, sharing: int, shares: list[int]
) -> None:
    before = assigned(names(members), partitions)
    for leaver in before:
        without = assigned([one for one in before if one != leaver], partitions, before)
        again = assigned(before, partitions, without)
        assert member_counts(again, partitions) == [sharing] * partitions
        assert partition_counts(again) == shares


@pytest.mark.parametrize("partitions", [3, 4, 7])
def test_members_that_come_and_go_leave_no_partition_alone_and_no_member_with_two_more(
    partitions: int,
) -> None:
    """A partition may have fewer members than its number for a while, as in Kafka (`balance.py`): one that
    misses several counts the same member twice. It never has more, and never none.
    """
    chance = random.Random(partitions)
    held: Held = {}
    members = names(3)
    for number in range(300):
        held = assigned(members, partitions, held)
        counts = member_counts(held, partitions)
        assert 1 <= min(counts) <= max(counts) <= sharing_of(len(members), partitions)
        assert max(partition_counts(held)) - min(partition_counts(held)) <= 1
        if len(members) > 1 and (len(members) > 9 or chance.random() < 0.5):
            members.remove(chance.choice(members))
        else:
            members.append(f"newcomer-{number}")
