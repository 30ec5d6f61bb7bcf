"""The assignor and the plain one give the same result, for groups of any size and history."""

from collections.abc import Iterable
from random import Random
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordinator.assignor.assignment import Assignment
from barnabas.coordinator.assignor.simple import AssignableTopic, MemberSpec, assign
from tests.coordinator.assignor.plain_assignor import plain_assign

IDS = {
    name: UUID(int=number * 0x9E3779B97F4A7C15_F39CC0605CEDC834 % (1 << 128))
    for number, name in enumerate("abcx", 1)
}
EXISTING = "abc"
"""All but x, a topic that was deleted."""


# Hash map order shows in large groups alone: the smallest map has more buckets than a small group members.
@given(
    seed=st.integers(0, 1 << 32),
    sizes=st.lists(st.integers(1, 70), min_size=1, max_size=4),
    partition_bound=st.sampled_from((2, 5, 30)),
    homogeneous=st.booleans(),
)
def test_any_group_is_assigned_as_plainly_through_all_its_changes(
    seed: int, sizes: list[int], partition_bound: int, homogeneous: bool
) -> None:
    chance = Random(seed)
    assigned: dict[str, Assignment] = {}
    for size in sizes:
        topics = {name: AssignableTopic(IDS[name], _partitions(chance, partition_bound)) for name in EXISTING}
        names = _some(chance, IDS)
        members = {
            f"member-{number}": MemberSpec(
                names if homogeneous else _some(chance, IDS),
                _previous(chance, partition_bound, assigned.get(f"member-{number}")),
            )
            for number in chance.sample(range(70), size)
        }
        assigned = assign(members, topics, homogeneous=homogeneous)
        assert assigned == plain_assign(members, topics, homogeneous=homogeneous)


def _previous(chance: Random, partition_bound: int, assigned: Assignment | None) -> Assignment:
    """In most cases the assignor's last result, otherwise a random assignment. Topic ids are equal, but not
    the same objects, as in a target that was read from the log.
    """
    if assigned is None or chance.random() < 0.1:
        held = {name: _partitions(chance, partition_bound) for name in _some(chance, IDS)}
        assigned = {IDS[name]: partitions for name, partitions in held.items() if partitions}
    return {UUID(int=topic_id.int): partitions for topic_id, partitions in assigned.items()}


def _partitions(chance: Random, bound: int) -> tuple[int, ...]:
    count = chance.randint(0, bound)
    # Mostly the first partitions, as in a topic that has this number of them.
    return tuple(range(count) if chance.random() < 0.7 else sorted(chance.sample(range(bound), count)))


def _some(chance: Random, names: Iterable[str]) -> frozenset[str]:
    return frozenset(name for name in names if chance.random() < 0.7)
