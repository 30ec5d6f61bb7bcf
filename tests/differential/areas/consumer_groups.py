"""Consumer groups of the new protocol (KIP-848): members that join, give up what they are asked to, move on,
leave and come back, with wrong epochs, commits and classic requests in between. Kafka looks regular
expressions up behind a heartbeat's back, so that none is subscribed to here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from barnabas.protocol.errors import ErrorCode
from tests.differential.areas.groups import group_is_ready
from tests.differential.stage import Stage
from tests.differential.versions import KAFKA_VERSIONS

_STEPS = 24
_PARTITION_COUNT = 4
_NOT_KNOWN = -1
_LEAVING, _LEAVING_FOR_NOW = -1, -2


class _Member:
    """One member, static if it has an instance id."""

    def __init__(self, number: int, instance_id: str | None) -> None:
        self.number = number
        self.member_id = f"member-{number}"
        self.instance_id = instance_id
        self.epoch = 0
        self.owned: list[dict[str, Any]] = []
        """The topic partitions that it was assigned last, which it owns when it beats next."""


class _Group:
    """A group of three members on two topics."""

    def __init__(self, stage: Stage, topic_ids: list[UUID]) -> None:
        self.stage = stage
        self.chance = stage.chance
        self.topic_ids = topic_ids
        self.group_id = stage.name("g")
        instance_id = self.chance.choice([None, "static"])
        self.members = [_Member(1, None), _Member(2, instance_id), _Member(3, None)]

    def steps(self) -> dict[Callable[[_Member], Awaitable[Any]], int]:
        """What may happen next, with how likely each is."""
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
        """One topic at a time: of several, who gets which hangs on the hashes of their ids."""
        a, b, nothing = (self.stage.name(name) for name in ("a", "b", "nothing"))
        return self.chance.choice([[a], [a], [a], [a, nothing], [b], [nothing]])

    def fields(self, member: _Member, **changed: Any) -> dict[str, Any]:
        return {
            "group_id": self.group_id,
            "member_id": member.member_id,
            "member_epoch": member.epoch,
            "instance_id": member.instance_id,
            "rack_id": None,
            "rebalance_timeout": 30_000 if member.epoch == 0 else _NOT_KNOWN,
            "subscribed_topic_names": None,
            "subscribed_topic_regex": None,
            "server_assignor": None,
            "topic_partitions": None,
            **changed,
        }

    async def send(self, member: _Member, **changed: Any) -> None:
        response = await self.stage.ask(
            member.number,
            "consumer_group_heartbeat",
            self.chance.choice(KAFKA_VERSIONS["consumer_group_heartbeat"]),
            **self.fields(member, **changed),
        )
        if response.error_code in (ErrorCode.unknown_member_id, ErrorCode.fenced_member_epoch):
            member.epoch, member.owned = 0, []
        if response.error_code is not ErrorCode.none:
            return
        member.epoch = response.member_epoch
        if response.assignment is not None:
            member.owned = [
                {"topic_id": one.topic_id, "partitions": list(one.partitions)}
                for one in response.assignment.topic_partitions
            ]

    async def join(self, member: _Member) -> None:
        member.owned = []
        await self.send(
            member,
            member_epoch=0,
            rebalance_timeout=30_000,
            subscribed_topic_names=self.topics(),
            server_assignor=self.chance.choice([None] * 6 + ["range", "uniform", "unheard-of"]),
            topic_partitions=[],
        )

    async def beat(self, member: _Member) -> None:
        if member.epoch > 0:
            await self.send(member, topic_partitions=self.chance.choice([member.owned, member.owned, None]))

    async def beat_wrongly(self, member: _Member) -> None:
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

    async def change_subscription(self, member: _Member) -> None:
        if member.epoch > 0:
            await self.send(member, subscribed_topic_names=self.topics())

    async def leave(self, member: _Member) -> None:
        epoch = _LEAVING if member.instance_id is None else self.chance.choice([_LEAVING, _LEAVING_FOR_NOW])
        await self.stage.ask(
            member.number, "consumer_group_heartbeat", **self.fields(member, member_epoch=epoch)
        )
        member.epoch, member.owned = 0, []

    async def commit(self, member: _Member) -> None:
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

    async def committed(self, member: _Member) -> None:
        topics = [{"name": self.stage.name("a"), "partition_indexes": [0, 1]}]
        asked = {
            "group_id": self.group_id,
            "member_id": self.chance.choice([member.member_id, None, "nobody"]),
            "member_epoch": self.chance.choice([member.epoch, member.epoch, -1, 77]),
            "topics": topics,
        }
        await self.stage.ask(member.number, "offset_fetch", 9, groups=[asked], require_stable=False)

    async def describe(self, _member: _Member) -> None:
        groups = [self.group_id, self.stage.name("none")]
        version = self.chance.choice(KAFKA_VERSIONS["consumer_group_describe"])
        authorized = self.chance.random() < 0.3
        await self.stage.ask(
            0,
            "consumer_group_describe",
            version,
            group_ids=groups,
            include_authorized_operations=authorized,
        )

    async def ask_as_classic(self, member: _Member) -> None:
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
