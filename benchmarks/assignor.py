"""`python -m benchmarks.assignor`: how long the assignors take for 1,000 members and 10,000 partitions.

No broker is involved. Every shape of a group is assigned from scratch, and again after each kind of change; a
figure is the median of five runs. `restarted` differs from `unchanged` only in the topic ids: they are equal,
but were read from the log again, so they are other objects. Two of the changes are of the backlogs, and only
`load` notices them: a tenth of the partitions gets one, or the first partition gets nearly all.
"""

import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeAlias
from uuid import UUID

from barnabas.coordinator.assignor import load, simple
from barnabas.coordinator.assignor.assignment import Assignment
from barnabas.coordinator.assignor.simple import AssignableTopic, MemberSpec

MEMBER_COUNT = 1_000
REPEATS = 5


class Shape(NamedTuple):
    """How many topics there are, the partitions of each, and how many of the topics each member reads."""

    topic_count: int
    partition_count: int
    subscribed_count: int

    @property
    def homogeneous(self) -> bool:
        return self.subscribed_count == self.topic_count

    def __str__(self) -> str:
        return f"{self.topic_count:,} x {self.partition_count:,}, {self.subscribed_count:,} read"


SHAPES = [
    *(Shape(1, 10_000, 1), Shape(10, 1_000, 10), Shape(1_000, 10, 1_000), Shape(10_000, 1, 10_000)),
    *(Shape(2, 5_000, 1), Shape(10, 1_000, 8), Shape(100, 100, 85)),
    *(Shape(1_000, 10, 10), Shape(1_000, 10, 100), Shape(1_000, 10, 857)),
    *(Shape(10_000, 1, 10), Shape(10_000, 1, 100)),
]

Topics: TypeAlias = dict[str, AssignableTopic]
Members: TypeAlias = dict[str, MemberSpec]


class Situation(NamedTuple):
    """The input of an assignor."""

    members: Members
    topics: Topics
    shape: Shape
    backlogs: load.Backlogs = MappingProxyType({})


def _by_simple(situation: Situation) -> dict[str, Assignment]:
    return simple.assign(situation.members, situation.topics, homogeneous=situation.shape.homogeneous)


def _by_load(situation: Situation) -> dict[str, Assignment]:
    return load.assign(situation.members, situation.topics, situation.backlogs)


Assign = Callable[[Situation], dict[str, Assignment]]
ASSIGNORS: Mapping[str, Assign] = {simple.NAME: _by_simple, load.NAME: _by_load}


def main() -> None:
    """Print a line of medians, in milliseconds, for each assignor and shape."""
    for name, assign in ASSIGNORS.items():
        situations = list(_situations(Shape(1, 1, 1), assign))
        print(f"{name}: topics x partitions".ljust(28), *(each.rjust(10) for each in situations), "ms")
        for shape in SHAPES:
            medians = [_median_ms(assign, situation) for situation in _situations(shape, assign).values()]
            print(str(shape).ljust(28), *(f"{median:10.0f}" for median in medians), flush=True)


def _median_ms(assign: Assign, situation: Situation) -> float:
    durations: list[float] = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        assigned = assign(situation)
        durations.append(time.perf_counter() - start)
        # Freeing the result must not count as part of the next run.
        del assigned
    return statistics.median(durations) * 1_000


def _situations(shape: Shape, assign: Assign) -> Mapping[str, Situation]:
    """The group before its first assignment, and after it with one kind of change each."""
    topics, fresh = _topics(shape), _fresh_members(shape)
    settled = _settled(Situation(fresh, topics, shape), assign)
    half = dict(list(fresh.items())[::2])
    half_settled = _settled(Situation(half, topics, shape), assign)
    grown = {name: _grown(topic) for name, topic in topics.items()}
    return {
        "fresh": Situation(fresh, topics, shape),
        "unchanged": Situation(settled, topics, shape),
        "restarted": Situation(_with_equal_ids(settled), topics, shape),
        "one joined": Situation({**settled, "new": fresh["member-0"]}, topics, shape),
        "one left": Situation(dict(list(settled.items())[1:]), topics, shape),
        "half new": Situation({**fresh, **half_settled}, topics, shape),
        "half left": Situation({member_id: settled[member_id] for member_id in half}, topics, shape),
        "grown": Situation(settled, grown, shape),
        "swapped": Situation(_swapped(settled), topics, shape),
        "a tenth": Situation(settled, topics, shape, _backlogs_of_a_tenth(topics)),
        "one busy": Situation(settled, topics, shape, dict.fromkeys(_keys(topics)[:1], 1_000_000)),
    }


def _keys(topics: Topics) -> list[tuple[UUID, int]]:
    return [(topic.topic_id, partition) for topic in topics.values() for partition in topic.partitions]


def _backlogs_of_a_tenth(topics: Topics) -> load.Backlogs:
    chance = random.Random(3)
    return {key: chance.randrange(100_000) for key in _keys(topics) if chance.random() < 0.1}


def _topics(shape: Shape) -> Topics:
    chance = random.Random(1)
    partitions = tuple(range(shape.partition_count))
    return {
        name: AssignableTopic(UUID(int=chance.getrandbits(128)), partitions) for name in _topic_names(shape)
    }


def _topic_names(shape: Shape) -> Sequence[str]:
    return [f"topic-{number}" for number in range(shape.topic_count)]


def _fresh_members(shape: Shape) -> Members:
    """Members without an earlier assignment, each with its own random topics."""
    chance = random.Random(2)
    names = _topic_names(shape)
    return {
        f"member-{number}": MemberSpec(frozenset(chance.sample(names, shape.subscribed_count)), {})
        for number in range(MEMBER_COUNT)
    }


def _settled(situation: Situation, assign: Assign) -> Members:
    assigned = assign(situation)
    return {
        member_id: MemberSpec(spec.subscribed, assigned[member_id])
        for member_id, spec in situation.members.items()
    }


def _with_equal_ids(members: Members) -> Members:
    return {
        member_id: MemberSpec(subscribed, {UUID(int=topic.int): parts for topic, parts in previous.items()})
        for member_id, (subscribed, previous) in members.items()
    }


def _grown(topic: AssignableTopic) -> AssignableTopic:
    return topic._replace(partitions=(*topic.partitions, len(topic.partitions)))


def _swapped(members: Members) -> Members:
    """Each member with the subscription of the previous one."""
    subscribed = [spec.subscribed for spec in members.values()]
    turned = [subscribed[-1], *subscribed]
    return {
        member_id: spec._replace(subscribed=turned[place])
        for place, (member_id, spec) in enumerate(members.items())
    }


if __name__ == "__main__":
    main()
