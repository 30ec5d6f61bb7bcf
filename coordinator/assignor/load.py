"""The assignor named "load": every partition goes to at least one member, and members to busy partitions.

KIP-932 ("Share-group coordinator") sketches it: "steering more consumers to busier partitions". Its measure
is the *backlog* of a partition: the records that are waiting or in flight. In a new group with equal backlogs
each partition has as many members as with `simple`. A member keeps its partitions unless the loads differ by
more than a tolerance. `load_balance.py` has the algorithm; this module turns topics, member ids and backlogs
into its numbers and back. The order of members and topics does not matter. Pure: no clock, no chance.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from barnabas.coordinator.assignor.assignment import EMPTY_ASSIGNMENT, Assignment
from barnabas.coordinator.assignor.simple import AssignableTopic, MemberSpec

NAME = "load"

BACKLOG_MAX: Final = 1_000_000
"""The greatest backlog, in records, that is told from greater ones. So one abandoned partition cannot take
all members from partitions that will also need hours.
"""
IDLE_DIVISOR: Final = 10
"""A partition without backlog weighs this part of the average, so that idle partitions are spread, too."""

_UNITS_PER_RECORD: Final = 1 << 20
"""Weights are divided among members in whole numbers."""

_Key: TypeAlias = tuple[UUID, int]
Backlogs: TypeAlias = Mapping[_Key, int]
"""Topic id and partition -> records that are waiting or in flight. A partition that is missing has none."""


def assign(
    members: Mapping[str, MemberSpec], topics: Mapping[str, AssignableTopic], backlogs: Backlogs
) -> dict[str, Assignment]:
    """Assign the partitions of the subscribed topics, given by name, to the members.

    Names without a topic are ignored. The result has an entry for each member.
    """
    assigned: dict[str, Assignment] = dict.fromkeys(members, EMPTY_ASSIGNMENT)
    for pool in _pools(members, topics):
        assigned.update(_assigned(pool, backlogs))
    return assigned


class _Readers(NamedTuple):
    """Members with the same subscription, and its topics that have partitions; both ascending."""

    member_ids: list[str]
    topic_names: list[str]


class _Pool(NamedTuple):
    """Members that share topics, directly or through others. Each pool is balanced by itself: the load of a
    topic is nothing to members that cannot read it.
    """

    previous: dict[str, Assignment]
    """By member, ascending: its last target."""
    topics: dict[str, AssignableTopic]
    """By name, ascending. Each has partitions and readers."""
    readers: list[_Readers]


def _pools(members: Mapping[str, MemberSpec], topics: Mapping[str, AssignableTopic]) -> list[_Pool]:
    """The pools of the members that read anything."""
    by_subscription: dict[frozenset[str], list[str]] = {}
    for member_id, spec in sorted(members.items()):
        by_subscription.setdefault(frozenset(spec.subscribed), []).append(member_id)
    every = [_Readers(ids, _readable(names, topics)) for names, ids in by_subscription.items()]
    readers = [subscribers for subscribers in every if subscribers.topic_names]
    root_of = _united(subscribers.topic_names for subscribers in readers)
    together: dict[str, list[_Readers]] = {}
    for subscribers in readers:
        together.setdefault(root_of(subscribers.topic_names[0]), []).append(subscribers)
    return [_pool(some, members, topics) for some in together.values()]


def _pool(
    readers: list[_Readers], members: Mapping[str, MemberSpec], topics: Mapping[str, AssignableTopic]
) -> _Pool:
    names = {name for subscribers in readers for name in subscribers.topic_names}
    member_ids = sorted(member_id for subscribers in readers for member_id in subscribers.member_ids)
    return _Pool(
        {member_id: members[member_id].previous for member_id in member_ids},
        {name: topics[name] for name in sorted(names)},
        readers,
    )


def _readable(names: Iterable[str], topics: Mapping[str, AssignableTopic]) -> list[str]:
    return sorted(name for name in names if name in topics and topics[name].partitions)


def _united(groups: Iterable[Sequence[str]]) -> Callable[[str], str]:
    """A function to one name for all names that are connected by common groups."""
    roots: dict[str, str] = {}

    def root_of(name: str) -> str:
        while roots.setdefault(name, name) != name:
            roots[name] = roots[roots[name]]
            name = roots[name]
        return name

    for names in groups:
        root = root_of(names[0])
        for name in names[1:]:
            roots[root_of(name)] = root
    return root_of


def _assigned(pool: _Pool, backlogs: Backlogs) -> dict[str, Assignment]:
    """Balance one pool."""
    from barnabas.coordinator.assignor.load_balance import LoadBalance  # few groups use this assignor

    keys = [(topic.topic_id, index) for topic in pool.topics.values() for index in topic.partitions]
    weights = _weights([backlogs.get(key, 0) for key in keys])
    balance = LoadBalance(weights, *_audiences(pool), _previous_slots(pool, keys))
    balance.run()
    return {
        member_id: _assignment(map(keys.__getitem__, sorted(slots)))
        for member_id, slots in zip(pool.previous, balance.held, strict=True)
    }


def _weights(backlogs: Sequence[int]) -> list[int]:
    bounded = [min(backlog, BACKLOG_MAX) for backlog in backlogs]
    idle = max(sum(bounded) // (IDLE_DIVISOR * len(bounded)), 1)
    return [(backlog + idle) * _UNITS_PER_RECORD for backlog in bounded]


def _audiences(pool: _Pool) -> tuple[list[list[int]], list[int]]:
    """The distinct sets of members that read a topic, and by slot the index of its set."""
    numbers = {member_id: number for number, member_id in enumerate(pool.previous)}
    readers_of: dict[str, list[int]] = {name: [] for name in pool.topics}
    for index, subscribers in enumerate(pool.readers):
        for name in subscribers.topic_names:
            readers_of[name].append(index)
    index_of: dict[tuple[int, ...], int] = {}
    audience_of: list[int] = []
    for name, topic in pool.topics.items():
        index = index_of.setdefault(tuple(readers_of[name]), len(index_of))
        audience_of += [index] * len(topic.partitions)
    audiences = [
        sorted(numbers[member_id] for index in indexes for member_id in pool.readers[index].member_ids)
        for indexes in index_of
    ]
    return audiences, audience_of


def _previous_slots(pool: _Pool, keys: Iterable[_Key]) -> list[list[int]]:
    """By member: the slots of its last target that it may still read."""
    slots: dict[int, dict[int, int]] = {topic.topic_id.int: {} for topic in pool.topics.values()}
    for slot, (topic_id, index) in enumerate(keys):
        slots[topic_id.int][index] = slot
    readable: dict[str, set[int]] = {}
    for subscribers in pool.readers:
        topic_ids = {pool.topics[name].topic_id.int for name in subscribers.topic_names}
        readable.update(dict.fromkeys(subscribers.member_ids, topic_ids))
    return [
        [
            slots[topic_id.int][index]
            for topic_id, indexes in previous.items()
            if topic_id.int in readable[member_id]
            for index in indexes
            if index in slots[topic_id.int]
        ]
        for member_id, previous in pool.previous.items()
    ]


def _assignment(keys: Iterable[_Key]) -> Assignment:
    partitions: dict[UUID, list[int]] = {}
    for topic_id, index in keys:
        partitions.setdefault(topic_id, []).append(index)
    return {topic_id: tuple(indexes) for topic_id, indexes in partitions.items()}
