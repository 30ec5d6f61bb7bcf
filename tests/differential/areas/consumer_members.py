"""Members of the new consumer protocol (KIP-848) and their requests: the common part of several histories."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.errors import ErrorCode
from tests.differential.stage import Stage
from tests.differential.versions import KAFKA_VERSIONS

_NOT_KNOWN = -1
LEAVING, LEAVING_FOR_NOW = -1, -2


class ConsumerMember:
    """One member, static if it has an instance id."""

    def __init__(self, number: int, instance_id: str | None = None) -> None:
        self.number = number
        self.member_id = f"member-{number}"
        self.instance_id = instance_id
        self.epoch = 0
        self.owned: list[dict[str, Any]] = []
        """The topic partitions of its last assignment, which it owns in its next heartbeat."""


class ConsumerMembers:
    """The actions of the members of one group."""

    def __init__(self, stage: Stage, members: list[ConsumerMember]) -> None:
        self.stage = stage
        self.chance = stage.chance
        self.group_id = stage.name("g")
        self.members = members
        self.assignor = self.chance.choice(["range", "uniform"])
        """The only assignor that members name. If two are named equally often, Kafka 4.4 has another group
        epoch with each heartbeat (decision 5).
        """

    def fields(self, member: ConsumerMember, **changed: Any) -> dict[str, Any]:
        """The fields of a heartbeat without news."""
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

    async def send(self, member: ConsumerMember, *, version: int | None = None, **changed: Any) -> None:
        """A heartbeat whose answer the member obeys."""
        versions = KAFKA_VERSIONS["consumer_group_heartbeat"]
        response = await self.stage.ask(
            member.number,
            "consumer_group_heartbeat",
            self.chance.choice(versions) if version is None else version,
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

    async def join_with(self, member: ConsumerMember, **subscription: Any) -> None:
        """Join, or join again."""
        member.owned = []
        await self.send(member, member_epoch=0, rebalance_timeout=30_000, topic_partitions=[], **subscription)

    async def beat(self, member: ConsumerMember) -> None:
        if member.epoch > 0:
            await self.send(member, topic_partitions=self.chance.choice([member.owned, member.owned, None]))

    async def leave(self, member: ConsumerMember) -> None:
        epoch = LEAVING if member.instance_id is None else self.chance.choice([LEAVING, LEAVING_FOR_NOW])
        leaving = self.fields(member, member_epoch=epoch)
        await self.stage.ask(member.number, "consumer_group_heartbeat", **leaving)
        member.epoch, member.owned = 0, []

    async def describe(self, _member: ConsumerMember) -> None:
        await self.stage.ask(
            0,
            "consumer_group_describe",
            self.chance.choice(KAFKA_VERSIONS["consumer_group_describe"]),
            group_ids=[self.group_id, self.stage.name("none")],
            include_authorized_operations=self.chance.random() < 0.3,
        )
