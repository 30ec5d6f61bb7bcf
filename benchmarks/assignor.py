"""`python -m benchmarks.assignor`: how long the assignor takes for 1,000 members and 10,000 partitions.

No broker is involved. Every shape of a group is assigned from scratch, and again after each kind of change; a
figure is the median of five runs. `restarted` differs from `unchanged` only in the topic ids: they are equal,
but were read from the log again, so they are other objects.
"""

import random
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias
from uuid import UUID

from barnabas.coordinator.assignor.simple import AssignableTopic, MemberSpec, assign

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


def main() -> None:
    """Print a line of medians, in milliseconds, for each shape."""
    situations = list(_situations(Shape(1, 1, 1)))
    print("topics x partitions".ljust(28), *(name.rjust(10) for name in situations), "ms")
    for shape in SHAPES:
        medians = [
            _median_ms(members, topics, homogeneous=shape.homogeneous)
            for members, topics in _situations(shape).values()
        ]
        print(str(shape).ljust(28), *(f"{median:10.0f}" for median in medians), flush=True)


def _median_ms(members: Members, topics: Topics, *, homogeneous: bool) -> float:
    durations: list[float] = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        assigned = assign(members, topics, homogeneous=homogeneous)
        durations.append(time.perf_counter() - start)
        # Freeing the result must not count as part of the next run.
        del assigned
    return statistics.median(durations) * 1_000


def _situations(shape: Shape) -> Mapping[str, tuple[Members, Topics]]:
    """The group before its first assignment, and after it with one kind of change each."""
    topics, fresh = _topics(shape), _fresh_members(shape)
    settled = _settled(fresh, topics, shape)
    half = dict(list(fresh.items())[::2])
    return {
        "fresh": (fresh, topics),
        "unchanged": (settled, topics),
        "restarted": (_with_equal_ids(settled), topics),
        "one joined": ({**settled, "new": fresh["member-0"]}, topics),
        "one left": (dict(list(settled.items())[1:]), topics),
        "half new": ({**fresh, **_settled(half, topics, shape)}, topics),
        "half left": ({member_id: settled[member_id] for member_id in half}, topics),
        "grown": (settled, {name: _grown(topic) for name, topic in topics.items()}),
        "swapped": (_swapped(settled), topics),
    }


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


def _settled(members: Members, topics: Topics, shape: Shape) -> Members:
    assigned = assign(members, topics, homogeneous=shape.homogeneous)
    return {
        member_id: MemberSpec(members[member_id].subscribed, assigned[member_id]) for member_id in members
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
