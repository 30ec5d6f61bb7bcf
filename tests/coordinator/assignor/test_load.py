"""The assignor by load: the results for small groups, written by hand, and its promises to any group."""

import json
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordinator.assignor import simple
from barnabas.coordinator.assignor.assignment import Assignment
from barnabas.coordinator.assignor.load import BACKLOG_MAX, IDLE_DIVISOR, Backlogs, assign
from barnabas.coordinator.assignor.load_balance import TOLERANCE_PERCENT
from barnabas.coordinator.assignor.simple import AssignableTopic, MemberSpec

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "vectors" / "load_assignor.json").read_text()
)["vectors"]
NAMES = "abcd"
IDS = {name: UUID(int=number << 64 | number) for number, name in enumerate(NAMES, 1)}
TOLERANCE = Fraction(TOLERANCE_PERCENT, 100)


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_every_vector_is_assigned_as_it_says(vector: dict[str, Any]) -> None:
    ids = {name: UUID(int=number) for number, name in enumerate(vector["topics"], 1)}
    topics = {
        name: AssignableTopic(ids[name], tuple(range(len(backlogs))))
        for name, backlogs in vector["topics"].items()
    }
    backlogs = {
        (ids[name], partition): backlog
        for name, backlogs in vector["topics"].items()
        for partition, backlog in enumerate(backlogs)
    }
    members = {
        member_id: MemberSpec(
            member["reads"],
            {ids[name]: tuple(partitions) for name, partitions in member.get("had", {}).items()},
        )
        for member_id, member in vector["members"].items()
    }
    names = {topic_id: name for name, topic_id in ids.items()}
    assert {
        member_id: {names[topic_id]: list(partitions) for topic_id, partitions in assignment.items()}
        for member_id, assignment in assign(members, topics, backlogs).items()
    } == {member_id: member["gets"] for member_id, member in vector["members"].items()}


# --- any group -------------------------------------------------------------------------------------

_Group = tuple[dict[str, MemberSpec], dict[str, AssignableTopic], Backlogs]
_BACKLOG = st.one_of(st.just(0), st.integers(0, 20), st.integers(0, 10_000), st.just(10**9))


@st.composite
def groups(draw: st.DrawFn, *, homogeneous: bool = False, fresh: bool = False) -> _Group:
    """Members with any targets before, also ones that are no result of the assignor."""
    counts = {name: draw(st.integers(0, 7)) for name in NAMES}
    topics = {name: AssignableTopic(IDS[name], tuple(range(count))) for name, count in counts.items()}
    subscription = st.frozensets(st.sampled_from([*NAMES, "absent"]))
    common = draw(subscription)
    members = {
        f"member-{number}": MemberSpec(
            common if homogeneous else draw(subscription), {} if fresh else draw(_targets())
        )
        for number in range(draw(st.integers(1, 12)))
    }
    return members, topics, draw(_backlogs(topics))


def _targets() -> st.SearchStrategy[Assignment]:
    partitions = st.frozensets(st.integers(0, 8), min_size=1).map(lambda found: tuple(sorted(found)))
    return st.dictionaries(st.sampled_from(list(IDS.values())), partitions)


def _backlogs(topics: Mapping[str, AssignableTopic]) -> st.SearchStrategy[Backlogs]:
    keys = [(topic.topic_id, partition) for topic in topics.values() for partition in topic.partitions]
    return st.fixed_dictionaries(dict.fromkeys(keys, _BACKLOG))


def _kept(members: dict[str, MemberSpec], assigned: Mapping[str, Assignment]) -> dict[str, MemberSpec]:
    return {
        member_id: MemberSpec(spec.subscribed, assigned.get(member_id, spec.previous))
        for member_id, spec in members.items()
    }


def _pairs(assigned: Mapping[str, Assignment]) -> set[tuple[str, UUID, int]]:
    return {
        (member_id, topic_id, partition)
        for member_id, assignment in assigned.items()
        for topic_id, partitions in assignment.items()
        for partition in partitions
    }


@given(groups())
def test_every_partition_is_read_only_by_subscribers_and_each_of_these_reads_something(group: _Group) -> None:
    members, topics, backlogs = group
    assigned = assign(members, topics, backlogs)
    assert assigned.keys() == members.keys()
    for member_id, spec in members.items():
        readable = {topics[name].topic_id for name in spec.subscribed if topics.get(name, (0, ()))[1]}
        assert assigned[member_id].keys() <= readable
        assert bool(assigned[member_id]) == bool(readable)
        assert all(parts == tuple(sorted(set(parts))) for parts in assigned[member_id].values())
    subscribed = {name for spec in members.values() for name in spec.subscribed} & topics.keys()
    assert {pair[1:] for pair in _pairs(assigned)} == {
        (topics[name].topic_id, partition) for name in subscribed for partition in topics[name].partitions
    }


@given(groups())
def test_a_result_is_final_until_something_changes(group: _Group) -> None:
    members, topics, backlogs = group
    assigned = assign(members, topics, backlogs)
    assert assign(_kept(members, assigned), topics, backlogs) == assigned


@given(groups(), st.integers(0, 1 << 32))
def test_no_order_of_members_topics_or_partitions_matters(group: _Group, seed: int) -> None:
    members, topics, backlogs = group
    chance = Random(seed)

    def shuffled(mapping: Mapping[Any, Any]) -> dict[Any, Any]:
        return dict(chance.sample(list(mapping.items()), len(mapping)))

    others = {
        member_id: MemberSpec(chance.sample(sorted(spec.subscribed), len(spec.subscribed)), spec.previous)
        for member_id, spec in shuffled(members).items()
    }
    assert assign(others, shuffled(topics), shuffled(backlogs)) == assign(members, topics, backlogs)


@given(groups(homogeneous=True))
def test_members_are_within_the_tolerance_or_no_move_pays(group: _Group) -> None:
    members, topics, backlogs = group
    assigned = assign(members, topics, backlogs)
    parts = _parts(members, topics, backlogs, assigned)
    held = {member_id: {pair[1:] for pair in _pairs({member_id: one})} for member_id, one in assigned.items()}
    loads = {member_id: sum(parts[key] for key in keys) for member_id, keys in held.items()}
    fair = sum(loads.values()) / len(loads)
    # Parts are whole numbers of a millionth of a record: two of them may be off by one.
    slack = Fraction(1, 1000)
    for giver in members:
        for taker in members:
            is_outside = (
                loads[giver] > fair * (1 + TOLERANCE) + slack or loads[taker] < fair * (1 - TOLERANCE) - slack
            )
            for key in held[giver] - held[taker] if is_outside else ():
                assert loads[giver] - loads[taker] < parts[key] * 3 / 2 + slack


@given(groups(homogeneous=True, fresh=True))
def test_no_member_of_a_new_group_has_more_than_twice_the_fair_load(group: _Group) -> None:
    members, topics, backlogs = group
    assigned = assign(members, topics, backlogs)
    parts = _parts(members, topics, backlogs, assigned)
    loads = [sum(parts[pair[1:]] for pair in _pairs({"": one})) for one in assigned.values()]
    assert max(loads) <= 2 * sum(loads) / len(loads) + Fraction(1, 1000)


def _parts(
    members: Mapping[str, MemberSpec],
    topics: Mapping[str, AssignableTopic],
    backlogs: Backlogs,
    assigned: Mapping[str, Assignment],
) -> dict[tuple[UUID, int], Fraction]:
    """Each partition's weight for one of its readers, in a homogeneous group."""
    names = set(next(iter(members.values())).subscribed) & topics.keys()
    keys = [(topics[name].topic_id, partition) for name in names for partition in topics[name].partitions]
    bounded = {key: min(backlogs[key], BACKLOG_MAX) for key in keys}
    idle = max(sum(bounded.values()) // (IDLE_DIVISOR * len(keys)), 1) if keys else 1
    readers = Counter(pair[1:] for pair in _pairs(assigned))
    return {key: Fraction(bounded[key] + idle, readers[key]) for key in keys}


# --- changes ---------------------------------------------------------------------------------------


def _one_topic(*backlogs: int) -> tuple[dict[str, AssignableTopic], Backlogs]:
    topics = {"a": AssignableTopic(IDS["a"], tuple(range(len(backlogs))))}
    return topics, {(IDS["a"], partition): backlog for partition, backlog in enumerate(backlogs)}


def _fresh(count: int) -> dict[str, MemberSpec]:
    return {f"member-{number:03}": MemberSpec("a", {}) for number in range(count)}


@pytest.mark.parametrize(
    ("member_count", "partition_count"), [(1, 1), (2, 8), (3, 7), (7, 3), (10, 10), (8, 4)]
)
def test_without_backlogs_partitions_have_as_many_members_as_with_simple(
    member_count: int, partition_count: int
) -> None:
    topics, backlogs = _one_topic(*[0] * partition_count)
    members = _fresh(member_count)
    by_load = Counter(pair[1:] for pair in _pairs(assign(members, topics, backlogs)))
    evenly = Counter(pair[1:] for pair in _pairs(simple.assign(members, topics, homogeneous=True)))
    assert sorted(by_load.values()) == sorted(evenly.values())


def test_backlogs_that_change_by_a_tenth_move_nothing() -> None:
    chance = Random(7)
    members = _fresh(4)
    topics, backlogs = _one_topic(*[1_000] * 8)
    first = assign(members, topics, backlogs)
    for _ in range(200):
        _, backlogs = _one_topic(*(chance.randint(900, 1_100) for _ in range(8)))
        assert assign(_kept(members, first), topics, backlogs) == first


def test_a_busy_partition_gains_and_loses_readers_and_the_other_pairs_stay() -> None:
    members = _fresh(6)
    topics, idle = _one_topic(*[0] * 12)
    before = assign(members, topics, idle)
    _, busy = _one_topic(50_000, *[0] * 11)
    during = assign(_kept(members, before), topics, busy)
    assert sum((IDS["a"], 0) == pair[1:] for pair in _pairs(during)) == 6
    assert _pairs(before) <= _pairs(during)
    after = assign(_kept(members, during), topics, idle)
    assert sum((IDS["a"], 0) == pair[1:] for pair in _pairs(after)) == 1
    assert {pair for pair in _pairs(after) if pair[2]} == {pair for pair in _pairs(before) if pair[2]}


def test_a_member_that_leaves_moves_only_its_own_partitions() -> None:
    members = _fresh(5)
    topics, backlogs = _one_topic(*[300] * 20)
    before = assign(members, topics, backlogs)
    rest = {
        member_id: spec for member_id, spec in _kept(members, before).items() if member_id != "member-000"
    }
    after = assign(rest, topics, backlogs)
    assert len(_pairs(after) - _pairs(before)) == len(before["member-000"][IDS["a"]])


def test_200_members_share_2000_partitions_with_skewed_backlogs() -> None:
    chance = Random(3)
    members = _fresh(200)
    topics, backlogs = _one_topic(*(int(chance.paretovariate(0.8)) * 100 for _ in range(2_000)))
    assigned = assign(members, topics, backlogs)
    parts = _parts(members, topics, backlogs, assigned)
    loads = [sum(parts[pair[1:]] for pair in _pairs({"": one})) for one in assigned.values()]
    assert max(loads) <= sum(loads) / len(loads) * (1 + TOLERANCE)
