"""The assignor named "simple" (KIP-932, "Share group assignment"): every partition goes to at least one
member, evenly.

A share group may give one partition to many members, so there are two goals: every partition has about the
same number of members, and every member about the same number of partitions. A member keeps its partitions
where that is possible. `balance.py` has the algorithm; this module turns topics and member ids into its
numbers and back. Pure: no clock, no chance.

Topics are looked up by their name or their id's `int`, because a `UUID` computes its hash in Python at every
look-up.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias
from uuid import UUID

from barnabas.coordinator.assignor.assignment import Assignment
from barnabas.coordinator.assignor.balance import Balance, quotas_of, sharing_of
from barnabas.coordinator.assignor.java_hash_map import topic_partition_hash, uuid_hash
from barnabas.coordinator.assignor.topic_balance import TopicBalances

NAME = "simple"


class AssignableTopic(NamedTuple):
    """An existing topic, and its assignable partitions, ascending."""

    topic_id: UUID
    partitions: tuple[int, ...]


class MemberSpec(NamedTuple):
    """A member, as the assignor sees it: the names of the topics that it reads, and its partitions in the
    last target assignment.
    """

    subscribed: Collection[str]
    previous: Assignment


def assign(
    members: Mapping[str, MemberSpec], topics: Mapping[str, AssignableTopic], *, homogeneous: bool
) -> dict[str, Assignment]:
    """Assign the partitions of the subscribed topics, given by name, to the members.

    The result depends on the order of members and topics; a coordinator passes them in hash map order (see
    `target_assignment.py`). Names without a topic are ignored. With `homogeneous` all members read the same
    topics. The result has an entry for each member, or is empty without members or subscriptions.
    """
    if not any(spec.subscribed for spec in members.values()):
        return {}
    return _assign_homogeneous(members, topics) if homogeneous else _assign_heterogeneous(members, topics)


def _assign_homogeneous(
    members: Mapping[str, MemberSpec], topics: Mapping[str, AssignableTopic]
) -> dict[str, Assignment]:
    """All topics' partitions in one pool.

    A member keeps a partition that is no longer assignable as long as the topic is subscribed.
    """
    subscribed = frozenset(next(iter(members.values())).subscribed)
    pool = _Pool([topic for name, topic in topics.items() if name in subscribed])
    previous = {number: pool.slots_of(spec.previous) for number, spec in enumerate(members.values())}
    targets = pool.targets()
    quotas = dict(enumerate(quotas_of(len(members), len(targets))))
    sharing = sharing_of(len(members), len(targets))
    balance = Balance(previous, targets, sharing, quotas, pool.hashes.__getitem__)
    balance.run()
    held = {**previous, **balance.changes}
    return {member_id: pool.assignment(held[number]) for number, member_id in enumerate(members)}


class _Pool:
    """Partitions of many topics, numbered in the order of their first use."""

    def __init__(self, topics: Sequence[AssignableTopic]) -> None:
        self.hashes: list[int] = []
        self._topics = topics
        self._keys: list[tuple[UUID, int]] = []
        self._slots: dict[int, dict[int, int]] = {topic.topic_id.int: {} for topic in topics}

    def slots_of(self, assignment: Assignment) -> list[int]:
        """The slots of an assignment's partitions, without topics that are not in the pool."""
        return [
            slot
            for topic_id, partitions in assignment.items()
            if topic_id.int in self._slots
            for slot in self._slots_in(topic_id, partitions)
        ]

    def targets(self) -> list[int]:
        """The slots of all assignable partitions."""
        return [slot for topic in self._topics for slot in self._slots_in(*topic)]

    def _slots_in(self, topic_id: UUID, partitions: Sequence[int]) -> list[int]:
        slots = self._slots[topic_id.int]
        for partition in partitions:
            if partition not in slots:
                slots[partition] = len(self._keys)
                self._keys.append((topic_id, partition))
                self.hashes.append(topic_partition_hash(uuid_hash(topic_id), partition))
        return [slots[partition] for partition in partitions]

    def assignment(self, slots: Iterable[int]) -> Assignment:
        partitions: dict[UUID, list[int]] = {}
        for topic_id, partition in map(self._keys.__getitem__, sorted(slots)):
            partitions.setdefault(topic_id, []).append(partition)
        return {topic_id: tuple(sorted(indexes)) for topic_id, indexes in partitions.items()}


_Holders: TypeAlias = dict[int, dict[int, tuple[int, ...]]]
"""The `int` of each read topic's id -> member number -> partitions that it held."""


def _assign_heterogeneous(
    members: Mapping[str, MemberSpec], topics: Mapping[str, AssignableTopic]
) -> dict[str, Assignment]:
    """Each topic separately, over the members that read it. A topic without readers is dropped."""
    specs = members.values()
    subscribers = _subscribers(specs, topics)
    holders: _Holders = {topics[name].topic_id.int: {} for name in subscribers}
    changes = [_enter_holdings(number, spec.previous, holders) for number, spec in enumerate(specs)]
    balances = TopicBalances()
    for name, numbers in subscribers.items():
        topic_id, targets = topics[name]
        for number, part in balances.changes(numbers, holders[topic_id.int], targets).items():
            changes[number][topic_id] = part
    assigned = (_changed(spec.previous, change) for spec, change in zip(specs, changes, strict=True))
    return dict(zip(members, assigned, strict=True))


def _subscribers(specs: Iterable[MemberSpec], topics: Collection[str]) -> dict[str, list[int]]:
    """Each read topic -> the numbers of its members, ascending."""
    subscribers: dict[str, list[int]] = {name: [] for name in topics}
    for number, spec in enumerate(specs):
        for name in spec.subscribed:
            if name in subscribers:
                subscribers[name].append(number)
    return {name: numbers for name, numbers in subscribers.items() if numbers}


def _enter_holdings(number: int, previous: Assignment, holders: _Holders) -> dict[UUID, tuple[int, ...]]:
    """Record a member's old partitions by topic; returns its first changes: topics without readers."""
    dropped: dict[UUID, tuple[int, ...]] = {}
    for topic_id, partitions in previous.items():
        members = holders.get(topic_id.int)
        if members is None:
            dropped[topic_id] = ()
        else:
            members[number] = partitions
    return dropped


def _changed(previous: Assignment, changes: Assignment) -> Assignment:
    """An assignment with some topics' partitions replaced; an empty replacement removes the topic."""
    if not previous or not changes:
        return previous or changes
    merged = {**previous, **changes}
    for topic_id in [topic_id for topic_id, partitions in changes.items() if not partitions]:
        del merged[topic_id]
    return merged
