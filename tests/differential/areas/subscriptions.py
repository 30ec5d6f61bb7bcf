"""The subscriptions of members of the new consumer protocol (KIP-848): several topics, by name and by regular
expression, with either assignor, while topics are created, enlarged and deleted.

Kafka looks up regular expressions after it has answered the heartbeat, and those of a group once in ten
seconds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from tests.differential.areas.aligned import create_topic_at, create_topics
from tests.differential.areas.consumer_members import ConsumerMember, ConsumerMembers
from tests.differential.areas.groups import group_is_ready
from tests.differential.stage import Stage

_STEPS = 22
_PARTITION_COUNTS = {"a": 4, "b": 3}
_LATE_TOPIC = "c"
_TOPIC_COUNT = 3
_LOOKED_UP_AGAIN_MS = 10_500
_LOOKING_UP_MS = 50


class _Group(ConsumerMembers):
    """A group of three members on two topics, and on one that may be created later."""

    def __init__(self, stage: Stage, topic_ids: list[UUID]) -> None:
        instance_id = stage.chance.choice([None, "static"])
        members = [ConsumerMember(1), ConsumerMember(2, instance_id), ConsumerMember(3)]
        super().__init__(stage, members)
        self.topic_ids = topic_ids
        self.partition_counts = dict(_PARTITION_COUNTS)

    def steps(self) -> dict[Callable[[ConsumerMember], Awaitable[Any]], int]:
        """The possible next steps, with their weights."""
        return {
            self.join: 5,
            self.beat: 10,
            self.subscribe: 3,
            self.leave: 1,
            self.describe: 2,
            self.come: 1,
            self.grow: 1,
            self.go: 1,
        }

    def names(self) -> list[str]:
        chosen = self.chance.choice(["a", "b", "ab", "ab", "abc", "bc", "ax", ""])
        return [self.stage.name(name) for name in chosen]

    def regex(self) -> str:
        regexes = ["(a|b)", "(a|b)", "[a-c]", "[a-c]", "(b|c)", ".*", "a", "x+", "(?i)A", "[[:alpha:]]", "("]
        regex = self.chance.choice(regexes)
        return self.stage.name(regex)

    def subscription(self) -> dict[str, Any]:
        by_name, by_regex = self.chance.choice([(True, False), (False, True), (False, True), (True, True)])
        return {
            "subscribed_topic_names": self.names() if by_name else None,
            "subscribed_topic_regex": self.regex() if by_regex else None,
        }

    async def come_to_target(self) -> None:
        """Makes both brokers compute a due target assignment. Otherwise a member with a new regular
        expression does it: Kafka ignores that member when it checks whether all have the same subscription,
        and may then use that member's subscription, which is empty. The first time may start a look-up that
        makes a target due again.
        """
        for member in [*self.members, *self.members]:
            if member.epoch > 0:
                await self.beat(member)
                await self.look_up()

    async def join(self, member: ConsumerMember) -> None:
        await self.come_to_target()
        assignor = self.chance.choice([None, None, self.assignor, self.assignor, self.assignor])
        await self.join_with(member, **self.subscription(), server_assignor=assignor)

    async def subscribe(self, member: ConsumerMember) -> None:
        if member.epoch > 0:
            await self.come_to_target()
            none: list[dict[str, Any]] = [{}, {"subscribed_topic_names": []}, {"subscribed_topic_regex": ""}]
            await self.send(member, version=1, **{**self.subscription(), **self.chance.choice(none)})

    async def look_up(self) -> None:
        """Waits until the regular expressions are looked up; any heartbeat may have started that."""
        await self.stage.elapse(_LOOKING_UP_MS)
        await self.stage.settle()

    async def come(self, _member: ConsumerMember) -> None:
        if _LATE_TOPIC in self.partition_counts:
            return
        self.partition_counts[_LATE_TOPIC] = 2
        place = len(self.topic_ids)
        self.topic_ids.append(
            await create_topic_at(self.stage, _LATE_TOPIC, 2, place=place, place_count=_TOPIC_COUNT)
        )

    async def grow(self, _member: ConsumerMember) -> None:
        count = self.partition_counts["a"] = self.partition_counts["a"] + 1
        topic = {"name": self.stage.name("a"), "count": count, "assignments": None}
        await self.stage.quietly(0, "create_partitions", topics=[topic], timeout=10_000, validate_only=False)
        await self.stage.until(lambda: self.stage.is_led("a", count))

    async def go(self, _member: ConsumerMember) -> None:
        if "b" in self.partition_counts:
            del self.partition_counts["b"]
            await self.stage.delete_topic("b")

    async def look_up_again(self) -> None:
        """All subscriptions since the last look-up of the group's regular expressions."""
        for member in self.members:
            await self.beat(member)
            await self.look_up()
        await self.stage.elapse(_LOOKED_UP_AGAIN_MS)
        for _ in range(3):
            for member in self.members:
                await self.beat(member)
                await self.look_up()
        await self.describe(self.members[0])


async def play(stage: Stage) -> None:
    topic_ids = await create_topics(stage, _PARTITION_COUNTS, _TOPIC_COUNT)
    await stage.until(lambda: group_is_ready(stage))
    group = _Group(stage, topic_ids)
    steps = group.steps()
    for action in stage.chance.choices(list(steps), weights=list(steps.values()), k=_STEPS):
        await action(stage.chance.choice(group.members))
        await group.look_up()
    if stage.chance.random() < 0.3:
        await group.look_up_again()
