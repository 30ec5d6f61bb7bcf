"""The assignor named "simple" (KIP-932, "Share group assignment"): every partition to at least one member,
evenly.

A share group may give one partition to many members, so the goal is twofold: every partition has about the
same number of members, and every member about the same number of partitions. What a member holds stays with
it where that allows. `balance.py` says how; this file turns topics and member ids into its numbers and back.
Pure: no clock, no chance.

Topics are looked up by their name or their id's `int`: a `UUID` computes its hash in Python at every look-up.
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
    """A topic that exists, and those of its partitions that may be assigned, ascending."""

    topic_id: UUID
    partitions: tuple[int, ...]


class MemberSpec(NamedTuple):
    """What the assignor knows of a member: the names of the topics that it reads, and its place in the last
    target assignment."""

    subscribed: Collection[str]
    previous: Assignment


def assign(
    members: Mapping[str, MemberSpec], topics: Mapping[str, AssignableTopic], *, homogeneous: bool
) -> dict[str, Assignment]:
    """Assign the partitions of the subscribed topics, which are given by name, to the members.

    Members are numbered, and topics walked, in the order given, and the result depends on it; a coordinator
    passes them in hash map order (see `target_assignment.py`). A name that is no topic's counts for nothing.
    `homogeneous` says that all members read the same topics. The result has an entry for each member, or none
    at all if there is no member or no subscription.
    """
    if not any(spec.subscribed for spec in members.values()):
        return {}
    return _assign_homogeneous(members, topics) if homogeneous else _assign_heterogeneous(members, topics)


def _assign_homogeneous(
    members: Mapping[str, MemberSpec], topics: Mapping[str, AssignableTopic]
) -> dict[str, Assignment]:
    """All topics' partitions in one pool.

    A partition that a member holds and that ceased to be assignable stays with it as long as the topic is
    subscribed.
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
    """Partitions of many topics, numbered in the order in which they are first asked for."""

    def __init__(self, topics: Sequence[AssignableTopic]) -> None:
        self.hashes: list[int] = []
        self._topics = topics
        self._keys: list[tuple[UUID, int]] = []
        self._slots: dict[int, dict[int, int]] = {topic.topic_id.int: {} for topic in topics}

    def slots_of(self, assignment: Assignment) -> list[int]:
        """The slots of an assignment's partitions, as far as their topics are in the pool."""
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
"""The `int` of the id of each topic that is read -> member number -> partitions that it held."""


def _assign_heterogeneous(
    members: Mapping[str, MemberSpec], topics: Mapping[str, AssignableTopic]
) -> dict[str, Assignment]:
    """Each topic alone, over the members that read it. A topic that nobody reads any more is dropped."""
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
    """Each topic that is read -> the numbers of its members, ascending."""
    subscribers: dict[str, list[int]] = {name: [] for name in topics}
    for number, spec in enumerate(specs):
        for name in spec.subscribed:
            if name in subscribers:
                subscribers[name].append(number)
    return {name: numbers for name, numbers in subscribers.items() if numbers}


def _enter_holdings(number: int, previous: Assignment, holders: _Holders) -> dict[UUID, tuple[int, ...]]:
    """Enter with each topic what a member held of it; returns its first changes: those that nobody reads."""
    dropped: dict[UUID, tuple[int, ...]] = {}
    for topic_id, partitions in previous.items():
        members = holders.get(topic_id.int)
        if members is None:
            dropped[topic_id] = ()
        else:
            members[number] = partitions
    return dropped


def _changed(previous: Assignment, changes: Assignment) -> Assignment:
    """An assignment with some topics' partitions replaced: by none, if the topic is to go."""
    if not previous or not changes:
        return previous or changes
    merged = {**previous, **changes}
    for topic_id in [topic_id for topic_id, partitions in changes.items() if not partitions]:
        del merged[topic_id]
    return merged
