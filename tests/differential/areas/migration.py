"""A group that changes from the classic protocol to the new one and back (KIP-848, "Online migration"): two
members of either kind on two topics, and the answers that tools get meanwhile.

The classic members' ids are chosen, so that assignors process the members in one order (`aligned`). The id of
a static member cannot be chosen. In a history with one, which is present with either protocol by turns, the
assignor is the one that orders by instance ids.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any

from barnabas.protocol.errors import ErrorCode
from tests.differential.areas.aligned import create_topics, know_member, member_id_at
from tests.differential.areas.consumer_members import ConsumerMember, ConsumerMembers
from tests.differential.areas.consumer_protocol import assignment, read_assignment, subscription
from tests.differential.areas.groups import group_is_ready
from tests.differential.stage import Sent, Stage
from tests.differential.versions import KAFKA_VERSIONS

_STEPS = 26
_PARTITION_COUNTS = {"a": 4, "b": 3}
_PATIENCE = 4
"""The number of checks for an answer before the request counts as waiting for others."""
_STATIC_VERSION = 5
"""The first version of JoinGroup with an instance id; before it a join without a member id gets one."""
_CLASSIC_PLACES = (2, 5)
"""Buckets of a hash map without the other members, which choose their own names."""


class _Classic:
    """A member of the classic protocol."""

    def __init__(self, number: int, instance_id: str | None) -> None:
        self.number = number
        self.instance_id = instance_id
        self.place = _CLASSIC_PLACES[number - 1]
        self.member_id = ""
        self.generation = -1
        self.leads = False
        self.member_ids: list[str] = []
        """The ids of all members, if it leads."""
        self.owned: dict[str, list[int]] = {}
        self.waiting: Sent | None = None

    def forget(self) -> None:
        self.member_id, self.generation, self.member_ids, self.owned = "", -1, [], {}


class _Group(ConsumerMembers):
    """The group, its classic members and its others."""

    def __init__(self, stage: Stage) -> None:
        self.instance_id = stage.chance.choice([None, None, "static"])
        super().__init__(stage, [ConsumerMember(3), ConsumerMember(4, self.instance_id)])
        self.classic = [_Classic(1, None), _Classic(2, self.instance_id)]
        self.version = stage.chance.choice([1, 2, 3])
        """The topics in the subscriptions of classic members."""

    def classic_steps(self) -> dict[Callable[[_Classic], Awaitable[Sent | None]], int]:
        return {
            self.join_classic: 4,
            self.synchronise: 4,
            self.beat_classic: 4,
            self.leave_classic: 1,
            self.commit: 1,
        }

    def consumer_steps(self) -> dict[Callable[[ConsumerMember], Awaitable[None]], int]:
        return {self.join: 3, self.beat: 6, self.leave: 2}

    async def step(self) -> None:
        """A step of a member, or a request of a tool."""
        kind = self.chance.choice(["classic"] * 5 + ["consumer"] * 4 + ["tool"])
        if kind == "classic":
            steps = self.classic_steps()
            (action,) = self.chance.choices(list(steps), weights=list(steps.values()))
            await self.act(self.chance.choice(self.classic), action)
        elif kind == "consumer":
            others = self.consumer_steps()
            (other,) = self.chance.choices(list(others), weights=list(others.values()))
            await other(self.chance.choice(self.members))
        else:
            await self.look()
        await self.stage.settle()
        for one in self.classic:
            await self.collect(one)

    async def act(self, client: _Classic, action: Callable[[_Classic], Awaitable[Sent | None]]) -> None:
        if client.waiting is not None:
            return
        client.waiting = await action(client)
        for _ in range(_PATIENCE):
            await self.stage.settle()
            if client.waiting is None or self.stage.is_answered(client.waiting):
                break

    async def collect(self, client: _Classic) -> None:
        sent = client.waiting
        if sent is None or not self.stage.is_answered(sent):
            return
        client.waiting = None
        response = await self.stage.answer(sent, self.known)
        if sent.api == "offset_commit":
            return
        if response.error_code in (ErrorCode.unknown_member_id, ErrorCode.fenced_instance_id):
            client.forget()
        elif sent.api == "join_group" and response.error_code is ErrorCode.none:
            client.member_id = response.member_id
            client.generation = response.generation_id
            client.member_ids = [one.member_id for one in response.members]
        elif sent.api == "sync_group" and response.error_code is ErrorCode.none:
            client.owned = read_assignment(response.assignment)

    def known(self, response: Any) -> Any:
        """The ids in it get names from now on."""
        know_member(self.stage, getattr(response, "member_id", ""))
        return response

    # Classic members.

    def joining(self, client: _Classic) -> dict[str, Any]:
        topics = [self.stage.name(name) for name in self.chance.choice(["a", "ab", "ab"])]
        metadata = subscription(topics, client.owned, version=self.version)
        return {
            "group_id": self.group_id,
            "session_timeout": 30_000,
            "rebalance_timeout": 30_000,
            "member_id": client.member_id,
            "group_instance_id": client.instance_id,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": metadata}],
            "reason": None,
        }

    async def join_classic(self, client: _Classic) -> Sent:
        joining = self.joining(client)
        if not client.member_id and client.instance_id is None:
            client.member_id = await member_id_at(self.stage, client.number, joining, place=client.place)
        versions = [one for one in KAFKA_VERSIONS["join_group"] if one >= _STATIC_VERSION]
        return await self.stage.send(
            client.number,
            "join_group",
            self.chance.choice(versions),
            **{**joining, "member_id": client.member_id},
        )

    async def synchronise(self, client: _Classic) -> Sent | None:
        if client.generation < 0:
            return None
        return await self.stage.send(
            client.number,
            "sync_group",
            self.chance.choice(KAFKA_VERSIONS["sync_group"]),
            group_id=self.group_id,
            generation_id=client.generation,
            member_id=client.member_id,
            group_instance_id=client.instance_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=self.assignments(client),
        )

    def assignments(self, leader: _Classic) -> list[dict[str, Any]]:
        """The partitions of `a`, in turns; none if it does not lead."""
        known = {one.member_id: one.number for one in self.classic}
        member_ids = sorted(leader.member_ids, key=lambda one: known.get(one, 0))
        indexes = range(_PARTITION_COUNTS["a"])
        return [
            {
                "member_id": member_id,
                "assignment": assignment(
                    {self.stage.name("a"): list(indexes[number :: len(member_ids)])}, version=self.version
                ),
            }
            for number, member_id in enumerate(member_ids)
        ]

    async def beat_classic(self, client: _Classic) -> Sent | None:
        if client.generation < 0:
            return None
        return await self.stage.send(
            client.number,
            "heartbeat",
            self.chance.choice(KAFKA_VERSIONS["heartbeat"]),
            group_id=self.group_id,
            generation_id=client.generation,
            member_id=client.member_id,
            group_instance_id=client.instance_id,
        )

    async def leave_classic(self, client: _Classic) -> Sent | None:
        if not client.member_id:
            return None
        member_id = client.member_id
        client.forget()
        return await self.stage.send(
            client.number,
            "leave_group",
            self.chance.choice(KAFKA_VERSIONS["leave_group"]),
            group_id=self.group_id,
            member_id=member_id,
            members=[{"member_id": member_id, "group_instance_id": client.instance_id, "reason": None}],
        )

    async def commit(self, client: _Classic) -> Sent | None:
        if client.generation < 0:
            return None
        partition = {
            "partition_index": 0,
            "committed_offset": self.chance.randrange(50),
            "committed_leader_epoch": -1,
            "committed_metadata": "",
        }
        return await self.stage.send(
            client.number,
            "offset_commit",
            self.chance.choice([one for one in KAFKA_VERSIONS["offset_commit"] if one < 10]),
            group_id=self.group_id,
            generation_id_or_member_epoch=client.generation,
            member_id=client.member_id,
            group_instance_id=client.instance_id,
            retention_time_ms=-1,
            topics=[{"name": self.stage.name("a"), "partitions": [partition]}],
        )

    # The others.

    async def join(self, member: ConsumerMember) -> None:
        names = [self.stage.name(name) for name in self.chance.choice(["a", "ab", "ab", "b"])]
        assignors = [None, None, "range"] if self.instance_id is None else ["range"]
        await self.join_with(
            member, subscribed_topic_names=names, server_assignor=self.chance.choice(assignors)
        )

    # Tools.

    async def look(self) -> None:
        """All answers that tools get; not while members join, because joining members have no order."""
        if any(one.waiting for one in self.classic):
            return
        version = self.chance.choice(KAFKA_VERSIONS["describe_groups"])
        await self.stage.ask(
            0, "describe_groups", version, groups=[self.group_id], include_authorized_operations=False
        )
        await self.describe(self.members[0])
        types = self.chance.choice([[], ["classic"], ["consumer"]])
        await self.stage.ask(0, "list_groups", 5, states_filter=[], types_filter=types, shown=self.only_ours)

    def only_ours(self, response: Any) -> Any:
        """Other histories have groups of their own."""
        groups = tuple(one for one in response.groups if one.group_id == self.group_id)
        return dataclasses.replace(response, groups=groups)


async def play(stage: Stage) -> None:
    await create_topics(stage, _PARTITION_COUNTS, len(_PARTITION_COUNTS))
    await stage.until(lambda: group_is_ready(stage))
    group = _Group(stage)
    for _ in range(_STEPS):
        await group.step()
    await group.look()
