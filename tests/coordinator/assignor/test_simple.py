"""The simple assignor gives the output of Kafka 4.3.1's, and has the properties of KIP-932."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordinator.assignor.assignment import Assignment
from barnabas.coordinator.assignor.simple import AssignableTopic, MemberSpec, assign

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "vectors" / "simple_assignor.json").read_text()
)["vectors"]
NAMES = ["a", "b", "c", "d", "e"]
IDS = {
    name: UUID(int=number * 0x9E3779B97F4A7C15_0123456789ABCDEF % (1 << 128))
    for number, name in enumerate(NAMES, 1)
}
UNSIGNED = (1 << 64) - 1


def _topic_id(topic: dict[str, Any]) -> UUID:
    return UUID(int=(int(topic["msb"]) & UNSIGNED) << 64 | int(topic["lsb"]) & UNSIGNED)


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_every_vector_of_kafka_is_matched_exactly(vector: dict[str, Any]) -> None:
    ids = [_topic_id(topic) for topic in vector["topics"]]
    topics = {
        str(index): AssignableTopic(
            topic_id, tuple(vector_topic.get("assignable", range(vector_topic["partitions"])))
        )
        for index, (topic_id, vector_topic) in enumerate(zip(ids, vector["topics"], strict=True))
    }
    members = {
        member["id"]: MemberSpec(
            list(map(str, member["subscribed"])),
            {ids[int(index)]: tuple(partitions) for index, partitions in member["previous"].items()},
        )
        for member in vector["members"]
    }
    assigned = assign(members, topics, homogeneous=vector["subscription_type"] == "homogeneous")
    assert {
        member_id: {str(ids.index(topic)): list(partitions) for topic, partitions in assignment.items()}
        for member_id, assignment in assigned.items()
    } == vector["output"]


def _topics(partition_counts: Mapping[str, int]) -> dict[str, AssignableTopic]:
    return {name: AssignableTopic(IDS[name], tuple(range(count))) for name, count in partition_counts.items()}


def _fresh(count: int, names: list[str]) -> dict[str, MemberSpec]:
    return {f"member-{number}": MemberSpec(names, {}) for number in range(count)}


def _kept(members: dict[str, MemberSpec], assigned: dict[str, Assignment]) -> dict[str, MemberSpec]:
    return {
        member_id: MemberSpec(spec.subscribed, assigned[member_id]) for member_id, spec in members.items()
    }


def _holders(assigned: dict[str, Assignment]) -> Counter[tuple[UUID, int]]:
    return Counter(
        (topic, partition)
        for assignment in assigned.values()
        for topic, partitions in assignment.items()
        for partition in partitions
    )


def test_a_topic_that_does_not_exist_gives_members_nothing() -> None:
    assigned = assign(_fresh(2, NAMES[:1]), {}, homogeneous=True)
    assert assigned == {"member-0": {}, "member-1": {}}


def test_a_member_without_topics_gets_nothing_beside_one_with() -> None:
    members = {"reader": MemberSpec(NAMES[:1], {}), "idler": MemberSpec([], {})}
    assigned = assign(members, _topics({"a": 2}), homogeneous=False)
    assert assigned == {"reader": {IDS["a"]: (0, 1)}, "idler": {}}


def test_a_topic_without_readers_is_dropped() -> None:
    members = {
        "one": MemberSpec(["b"], {IDS["a"]: (0, 1)}),
        "two": MemberSpec(["b", "c"], {IDS["a"]: (2,)}),
    }
    assigned = assign(members, _topics({"a": 3, "b": 2, "c": 1}), homogeneous=False)
    assert all(IDS["a"] not in assignment for assignment in assigned.values())


def test_a_topic_that_a_member_reads_no_more_goes_to_those_that_do() -> None:
    members = {"one": MemberSpec(["b"], {IDS["a"]: (0, 1)}), "two": MemberSpec(["a", "b"], {})}
    assigned = assign(members, _topics({"a": 2, "b": 1}), homogeneous=False)
    assert assigned == {"one": {IDS["b"]: (0,)}, "two": {IDS["a"]: (0, 1), IDS["b"]: (0,)}}


@pytest.mark.parametrize("homogeneous", [True, False])
def test_nothing_moves_when_nothing_changed(homogeneous: bool) -> None:
    members = _fresh(7, NAMES[:3])
    topics = _topics(dict.fromkeys(NAMES[:3], 9))
    assigned = assign(members, topics, homogeneous=homogeneous)
    assert assign(_kept(members, assigned), topics, homogeneous=homogeneous) == assigned


@pytest.mark.parametrize("homogeneous", [True, False])
def test_a_thousand_members_share_ten_thousand_partitions_evenly(homogeneous: bool) -> None:
    members = _fresh(1_000, NAMES[:2])
    assigned = assign(members, _topics(dict.fromkeys(NAMES[:2], 5_000)), homogeneous=homogeneous)
    assert {sum(map(len, assignment.values())) for assignment in assigned.values()} == {10}
    assert set(_holders(assigned).values()) == {1}


@given(
    subscriptions=st.lists(st.sets(st.sampled_from(NAMES[:4]), max_size=4), min_size=1, max_size=12),
    counts=st.fixed_dictionaries({name: st.integers(0, 9) for name in NAMES[:4]}),
    later=st.fixed_dictionaries({name: st.integers(0, 9) for name in NAMES[:4]}),
    joins=st.integers(0, 3),
)
def test_every_partition_is_read_and_only_by_subscribers(
    subscriptions: list[set[str]], counts: dict[str, int], later: dict[str, int], joins: int
) -> None:
    members = {
        f"member-{number}": MemberSpec(frozenset(names), {}) for number, names in enumerate(subscriptions)
    }
    homogeneous = len({spec.subscribed for spec in members.values()}) == 1
    assigned = assign(members, _topics(counts), homogeneous=homogeneous)
    _check(members, counts, assigned)
    members = _kept(members, assigned) if assigned else members
    members.update((f"late-{number}", members["member-0"]._replace(previous={})) for number in range(joins))
    grown = {name: max(count, later[name]) for name, count in counts.items()}
    _check(members, grown, assign(members, _topics(grown), homogeneous=homogeneous))


def _check(members: dict[str, MemberSpec], counts: dict[str, int], assigned: dict[str, Assignment]) -> None:
    for member_id, assignment in assigned.items():
        assert set(assignment) <= {IDS[name] for name in members[member_id].subscribed}
        assert all(partitions == tuple(sorted(set(partitions))) for partitions in assignment.values())
    subscribed = {name for spec in members.values() for name in spec.subscribed}
    expected = {(IDS[name], partition) for name in subscribed for partition in range(counts[name])}
    assert set(_holders(assigned)) == expected
