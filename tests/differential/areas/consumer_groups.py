"""Consumer groups of the new protocol (KIP-848): members that join, give up partitions on request, continue,
leave and come back, with wrong epochs, commits and classic requests in between. `subscriptions` varies their
subscriptions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from tests.differential.areas.consumer_members import ConsumerMember, ConsumerMembers
from tests.differential.areas.groups import group_is_ready
from tests.differential.stage import Stage
from tests.differential.versions import KAFKA_VERSIONS

_STEPS = 24
_PARTITION_COUNT = 4


class _Group(ConsumerMembers):
    """A group of three members on two topics."""

    def __init__(self, stage: Stage, topic_ids: list[UUID]) -> None:
        instance_id = stage.chance.choice([None, "static"])
        super().__init__(stage, [ConsumerMember(1), ConsumerMember(2, instance_id), ConsumerMember(3)])
        self.topic_ids = topic_ids

    def steps(self) -> dict[Callable[[ConsumerMember], Awaitable[Any]], int]:
        """The possible next steps, with their weights."""
        return {
            self.join: 4,
            self.beat: 10,
            self.beat_wrongly: 2,
            self.change_subscription: 1,
            self.leave: 1,
            self.commit: 2,
            self.committed: 2,
            self.describe: 2,
            self.ask_as_classic: 1,
        }

    def topics(self) -> list[str]:
        a, b, nothing = (self.stage.name(name) for name in ("a", "b", "nothing"))
        return self.chance.choice([[a], [a], [a], [a, nothing], [b], [nothing]])

    async def join(self, member: ConsumerMember) -> None:
        assignor = self.chance.choice([None] * 6 + [self.assignor, self.assignor, "unheard-of"])
        await self.join_with(member, subscribed_topic_names=self.topics(), server_assignor=assignor)

    async def beat_wrongly(self, member: ConsumerMember) -> None:
        wrong: dict[str, Any] = self.chance.choice(
            [
                {"member_epoch": member.epoch + 5},
                {"member_id": "nobody", "member_epoch": 3},
                {"member_id": ""},
                {"group_id": ""},
                {"group_id": self.stage.name("none"), "member_epoch": 2},
                {"member_epoch": -7},
                {"member_epoch": 0, "rebalance_timeout": 30_000},
                {"member_epoch": 0, "rebalance_timeout": 0, "subscribed_topic_names": ["x"]},
                {"instance_id": ""},
                {"rack_id": ""},
                {"subscribed_topic_regex": "(", "member_epoch": member.epoch},
            ]
        )
        await self.stage.ask(member.number, "consumer_group_heartbeat", **self.fields(member, **wrong))

    async def change_subscription(self, member: ConsumerMember) -> None:
        if member.epoch > 0:
            await self.send(member, subscribed_topic_names=self.topics())

    async def commit(self, member: ConsumerMember) -> None:
        version = self.chance.choice([one for one in KAFKA_VERSIONS["offset_commit"] if one >= 8])
        partitions = [
            {
                "partition_index": self.chance.choice([0, 1]),
                "committed_offset": self.chance.randrange(50),
                "committed_leader_epoch": -1,
                "committed_metadata": "",
            }
        ]
        topic = {"name": self.stage.name("a"), "topic_id": self.topic_ids[0], "partitions": partitions}
        await self.stage.ask(
            member.number,
            "offset_commit",
            version,
            group_id=self.group_id,
            generation_id_or_member_epoch=self.chance.choice([member.epoch] * 6 + [member.epoch + 1, -1]),
            member_id=self.chance.choice([member.member_id] * 8 + ["nobody", ""]),
            group_instance_id=member.instance_id,
            topics=[topic],
        )

    async def committed(self, member: ConsumerMember) -> None:
        topics = [{"name": self.stage.name("a"), "partition_indexes": [0, 1]}]
        asked = {
            "group_id": self.group_id,
            "member_id": self.chance.choice([member.member_id, None, "nobody"]),
            "member_epoch": self.chance.choice([member.epoch, member.epoch, -1, 77]),
            "topics": topics,
        }
        await self.stage.ask(member.number, "offset_fetch", 9, groups=[asked], require_stable=False)

    async def ask_as_classic(self, member: ConsumerMember) -> None:
        classic: dict[str, Any] = {"group_id": self.group_id, "member_id": member.member_id}
        api = self.chance.choice(["heartbeat", "describe_groups", "leave_group", "delete_groups"])
        await self.stage.ask(
            member.number,
            api,
            **classic,
            generation_id=member.epoch,
            groups=[self.group_id],
            groups_names=[self.group_id],
            members=[{"member_id": "nobody", "group_instance_id": None}],
        )


async def play(stage: Stage) -> None:
    topic_ids = [await stage.create_topic(name, _PARTITION_COUNT) for name in ("a", "b")]
    await stage.until(lambda: group_is_ready(stage))
    group = _Group(stage, topic_ids)
    steps = group.steps()
    for action in stage.chance.choices(list(steps), weights=list(steps.values()), k=_STEPS):
        await action(stage.chance.choice(group.members))
