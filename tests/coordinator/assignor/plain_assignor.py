"""A plain and slow version of the simple assignor, with which the fast one is compared.

Members are numbers, a partition is (topic id, index), and assignments are searched, not indexed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil
from typing import TypeAlias
from uuid import UUID

from barnabas.coordinator.assignor.assignment import Assignment
from barnabas.coordinator.assignor.java_hash_map import (
    default_capacity,
    presized_capacity,
    topic_partition_hash,
    uuid_hash,
    walk_order,
)
from barnabas.coordinator.assignor.simple import AssignableTopic, MemberSpec

Partition: TypeAlias = tuple[UUID, int]
Held: TypeAlias = dict[int, list[Partition]]


def plain_assign(
    members: Mapping[str, MemberSpec], topics: Mapping[str, AssignableTopic], *, homogeneous: bool
) -> dict[str, Assignment]:
    """As `assign`: one balance over all topics, whose hash maps know the topic, or one for each topic."""
    specs = list(members.values())
    if not any(spec.subscribed for spec in specs):
        return {}
    if homogeneous:
        balances = [
            _balance_topics(specs, topics, lambda key: topic_partition_hash(uuid_hash(key[0]), key[1]))
        ]
    else:
        balances = [
            _balance_topics(specs, {name: topic}, lambda key: key[1]) for name, topic in topics.items()
        ]
    return {
        member_id: _assignment(partition for held in balances for partition in held[number])
        for number, member_id in enumerate(members)
    }


def _assignment(partitions: Iterable[Partition]) -> Assignment:
    by_topic: dict[UUID, tuple[int, ...]] = {}
    for topic_id, index in sorted(partitions):
        by_topic[topic_id] = (*by_topic.get(topic_id, ()), index)
    return by_topic


def _balance_topics(
    specs: Sequence[MemberSpec], topics: Mapping[str, AssignableTopic], hash_of: Callable[[Partition], int]
) -> Held:
    subscribers = [
        number for number, spec in enumerate(specs) if not topics.keys().isdisjoint(spec.subscribed)
    ]
    read = [topic for name, topic in topics.items() if any(name in spec.subscribed for spec in specs)]
    topic_ids = {topic.topic_id for topic in read}
    held = {
        number: [
            (topic_id, index)
            for topic_id, indexes in spec.previous.items()
            if topic_id in topic_ids
            for index in indexes
        ]
        for number, spec in enumerate(specs)
    }
    targets = [(topic.topic_id, index) for topic in read for index in topic.partitions]
    _balance(held, targets, subscribers, hash_of)
    return held


def _balance(
    held: Held, targets: Sequence[Partition], subscribers: Sequence[int], hash_of: Callable[[Partition], int]
) -> None:
    sharing = ceil(len(subscribers) / len(targets)) if targets else 0
    share = sharing * len(targets) / len(subscribers) if subscribers else 0
    quotas = {
        number: ceil(share * (place + 1)) - ceil(share * place) for place, number in enumerate(subscribers)
    }
    insertions = Counter(partition for partitions in held.values() for partition in partitions)
    for number, partitions in held.items():
        excess = max(0, len(partitions) - quotas.get(number, 0))
        held[number] = walk_order(partitions, hash_of, default_capacity(len(partitions)))[excess:]
    for partition, count in insertions.items():
        holders = [number for number, partitions in held.items() if partition in partitions]
        excess = max(0, len(holders) - sharing)
        for number in walk_order(holders, int, default_capacity(count))[:excess]:
            held[number].remove(partition)
    met = list(dict.fromkeys([*insertions, *targets]))
    order = walk_order(reversed(met), hash_of, presized_capacity(len(targets), len(met)))
    _fill(held, order, sharing, quotas)


def _fill(held: Held, order: Sequence[Partition], sharing: int, quotas: Mapping[int, int]) -> None:
    kept = {number: frozenset(partitions) for number, partitions in held.items()}
    unfilled = [number for number, quota in quotas.items() if len(held[number]) < quota]
    turn, gave_in_round = 0, False
    for partition in order:
        missing = sharing - sum(partition in partitions for partitions in kept.values())
        while missing > 0:
            if turn == len(unfilled):
                if not gave_in_round or not unfilled:
                    break
                turn, gave_in_round = 0, False
            number = unfilled[turn]
            turn += 1
            if partition in kept[number]:
                continue
            missing, gave_in_round = missing - 1, True
            if partition not in held[number]:
                held[number].append(partition)
            if len(held[number]) >= quotas[number]:
                turn -= 1
                del unfilled[turn]
