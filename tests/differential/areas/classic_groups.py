"""Classic consumer groups: four clients of one topic or two that join, synchronise, send heartbeats, leave,
commit and look up offsets in any order, sometimes with another member's generation or a wrong member id.
Sometimes one of them does so without a group.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from barnabas.protocol.errors import ErrorCode
from tests.differential.areas.consumer_protocol import subscription
from tests.differential.areas.groups import group_is_ready
from tests.differential.stage import Sent, Stage
from tests.differential.versions import KAFKA_VERSIONS

_CLIENT_COUNT = 4
_STEPS = 26
_PATIENCE = 4
"""The number of checks for an answer before the request counts as waiting for others."""
_TOPICS = ("t", "u")
_PARTITION_COUNT = 3
_NO_TOPIC = UUID(int=5)


class _Client:
    """The knowledge of one client about itself."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.waiting: Sent | None = None
        self.member_id = ""
        self.generation = -1
        self.instance_id: str | None = None
        self.member_ids: list[str] = []
        """The ids of all members, if it leads."""


class _Group:
    """The group and its clients."""

    def __init__(self, stage: Stage, topic_ids: list[UUID]) -> None:
        self.stage = stage
        self.chance = stage.chance
        self.topics = dict(zip(map(stage.name, _TOPICS), topic_ids, strict=True))
        chosen = self.chance.choice([[one] for one in self.topics] + [list(self.topics)])
        self.metadata = subscription(chosen)
        """All clients with an id. Clients without an answer about their id cannot be distinguished."""
        self.group_id = stage.name("g")
        self.clients = [_Client(number) for number in range(1, _CLIENT_COUNT + 1)]

    def steps(self) -> dict[Callable[[_Client], Awaitable[Sent]], int]:
        """The possible next steps, with their weights."""
        return {
            self.join: 4,
            self.synchronise: 5,
            self.beat: 2,
            self.leave: 1,
            self.commit: 2,
            self.committed: 1,
            self.describe: 1,
            self.delete_offsets: 1,
            self.delete: 1,
            self.without_group: 1,
        }

    async def step(self, action: Callable[[_Client], Awaitable[Sent]]) -> None:
        """A leader with followers stays, because hashing decides the next leader in Kafka. Hashing also
        decides the order of members without an answer about their ids.
        """
        client = self.chance.choice(self.clients)
        if client.waiting is not None or (action == self.leave and len(client.member_ids) > 1):
            return
        if action == self.describe and any(one.waiting for one in self.clients):
            return
        client.waiting = await action(client)
        for _ in range(_PATIENCE):
            await self.stage.settle()
            if self.stage.is_answered(client.waiting):
                break
        # The leader last: its answer has the ids of the others, which have names by then.
        for one in sorted(self.clients, key=lambda one: bool(one.member_ids)):
            await self.collect(one)

    async def collect(self, client: _Client) -> None:
        sent = client.waiting
        if sent is None or not self.stage.is_answered(sent):
            return
        client.waiting = None
        response = await self.stage.answer(sent)
        if sent.api != "join_group" or response is None:
            return
        client.member_id = response.member_id or client.member_id
        if response.error_code is ErrorCode.none:
            client.generation = response.generation_id
            client.member_ids = [one.member_id for one in response.members]

    def version(self, api: str, minimum: int = 0) -> int:
        return self.chance.choice([one for one in KAFKA_VERSIONS[api] if one >= minimum])

    def member_id(self, client: _Client) -> str:
        return self.chance.choice([client.member_id] * 8 + ["", "nobody"])

    def generation(self, client: _Client) -> int:
        return self.chance.choice([client.generation] * 9 + [client.generation + 1])

    async def join(self, client: _Client) -> Sent:
        if client.instance_id is None and not client.member_id and self.chance.random() < 0.3:
            client.instance_id = f"static-{client.number}"
        version = self.version("join_group", 5 if client.instance_id else 0)
        names = self.chance.choice([["range"], ["range", "sticky"], ["sticky", "range"], ["sticky"]])
        return await self.stage.send(
            client.number,
            "join_group",
            version,
            group_id=self.group_id,
            session_timeout=self.chance.choice([30_000] * 12 + [5]),
            rebalance_timeout=30_000,
            member_id="" if self.forgets(client) else client.member_id,
            group_instance_id=client.instance_id,
            protocol_type=self.chance.choice(["consumer"] * 12 + ["connect"]),
            protocols=[{"name": name, "metadata": self.metadata} for name in names],
            reason="because",
        )

    def forgets(self, client: _Client) -> bool:
        """Whether a client joins as a new one. Members that may lead by then do not."""
        may_lead = client.member_ids or client.instance_id is not None
        return not may_lead and self.chance.random() < 0.2

    async def synchronise(self, client: _Client) -> Sent:
        assignments = [
            {"member_id": member_id, "assignment": b"for " + member_id.encode()}
            for member_id in client.member_ids
        ]
        return await self.stage.send(
            client.number,
            "sync_group",
            self.version("sync_group"),
            group_id=self.group_id,
            generation_id=self.generation(client),
            member_id=self.member_id(client),
            group_instance_id=client.instance_id,
            protocol_type=self.chance.choice(["consumer"] * 8 + ["other", None]),
            protocol_name=self.chance.choice([None] * 5 + ["range"]),
            assignments=assignments,
        )

    async def beat(self, client: _Client) -> Sent:
        return await self.stage.send(
            client.number,
            "heartbeat",
            self.version("heartbeat"),
            group_id=self.group_id,
            generation_id=self.generation(client),
            member_id=self.member_id(client),
            group_instance_id=client.instance_id,
        )

    async def leave(self, client: _Client) -> Sent:
        version = self.version("leave_group")
        member_id = self.member_id(client)
        members = [
            {"member_id": member_id, "group_instance_id": client.instance_id, "reason": None},
            {"member_id": "nobody", "group_instance_id": None, "reason": "none"},
        ]
        return await self.stage.send(
            client.number,
            "leave_group",
            version,
            group_id=self.group_id,
            member_id=member_id,
            members=members[: self.chance.choice([1, 2])],
        )

    def named(self, partitions: str, values: list[Any], version: int, by_id: int) -> list[dict[str, Any]]:
        """A topic or two, and sometimes a missing one."""
        count = self.chance.choice([1, 1, 2])
        topics = [
            {"name": name, "topic_id": topic_id, partitions: values}
            for name, topic_id in self.chance.sample(list(self.topics.items()), count)
        ]
        if self.chance.random() < 0.2 and version < by_id:
            topics.append({"name": self.stage.name("nothing"), partitions: values[:1]})
        elif self.chance.random() < 0.2:
            topics.append({"name": self.stage.name("nothing"), "topic_id": _NO_TOPIC, partitions: values[:1]})
        return topics

    async def commit(self, client: _Client) -> Sent:
        """One offset only: of a group without members Kafka stores none, but remembers it."""
        version = self.version("offset_commit")
        by_group = self.chance.random() < 0.6
        accepted = self.chance.randrange(_PARTITION_COUNT)
        other = self.chance.choice([one for one in (*range(_PARTITION_COUNT), 7) if one != accepted])
        partitions = [
            self.offset(accepted, ["", "text", None]),
            self.offset(other, ["", "text", "x" * 5_000, None]),
        ]
        return await self.stage.send(
            client.number,
            "offset_commit",
            version,
            group_id=self.group_id,
            generation_id_or_member_epoch=self.generation(client) if by_group else -1,
            member_id=self.member_id(client) if by_group else "",
            group_instance_id=client.instance_id if by_group else None,
            retention_time_ms=-1,
            topics=self.named("partitions", partitions, version, 10),
        )

    def offset(self, index: int, metadata: list[str | None]) -> dict[str, Any]:
        return {
            "partition_index": index,
            "committed_offset": self.chance.randrange(100),
            "committed_leader_epoch": self.chance.choice([-1, 0]),
            "committed_metadata": self.chance.choice(metadata),
        }

    async def committed(self, client: _Client) -> Sent:
        version = self.version("offset_fetch")
        topics = self.named("partition_indexes", [0, 1, 2, 9], version, 10)
        everything = version >= 2 and self.chance.random() < 0.4
        group = {
            "group_id": self.group_id,
            "member_id": None,
            "member_epoch": -1,
            "topics": None if everything else topics,
        }
        return await self.stage.send(
            client.number,
            "offset_fetch",
            version,
            group_id=self.group_id,
            topics=group["topics"],
            groups=[group, {**group, "group_id": self.stage.name("none")}],
            require_stable=self.chance.random() < 0.5,
        )

    async def describe(self, client: _Client) -> Sent:
        groups = [self.group_id, self.stage.name("none")]
        return await self.stage.send(
            client.number,
            "describe_groups",
            self.version("describe_groups"),
            groups=groups,
            include_authorized_operations=self.chance.random() < 0.3,
        )

    async def delete_offsets(self, client: _Client) -> Sent:
        partitions = [{"partition_index": index} for index in (0, 2, 8)]
        topics = self.named("partitions", partitions, 0, 1)
        return await self.stage.send(client.number, "offset_delete", 0, group_id=self.group_id, topics=topics)

    async def delete(self, client: _Client) -> Sent:
        return await self.stage.send(
            client.number,
            "delete_groups",
            self.version("delete_groups"),
            groups_names=[self.group_id, self.stage.name("none")],
        )

    async def without_group(self, client: _Client) -> Sent:
        """Requests with the empty group id, which all histories share; their topics differ."""
        api = self.chance.choice(
            ["offset_commit", "offset_fetch", "offset_delete", "join_group", "heartbeat"]
        )
        version = self.version(api)
        if api == "offset_commit":
            topics = self.named("partitions", [self.offset(0, ["", "text"])], version, 10)
        elif api == "offset_delete":
            topics = self.named("partitions", [{"partition_index": 0}], 0, 1)
        else:
            topics = self.named("partition_indexes", [0, 1], version, 10)
        group = {"group_id": "", "member_id": None, "member_epoch": -1, "topics": topics}
        return await self.stage.send(
            client.number,
            api,
            version,
            group_id="",
            topics=topics,
            groups=[group],
            require_stable=self.chance.random() < 0.5,
            member_id="",
            generation_id=-1,
            generation_id_or_member_epoch=-1,
            retention_time_ms=-1,
            session_timeout=30_000,
            rebalance_timeout=30_000,
            protocol_type="consumer",
            protocols=[{"name": "range", "metadata": self.metadata}],
        )


async def play(stage: Stage) -> None:
    topic_ids = [await stage.create_topic(name, _PARTITION_COUNT) for name in _TOPICS]
    group = _Group(stage, topic_ids)
    await stage.until(lambda: group_is_ready(stage))
    steps = group.steps()
    for action in stage.chance.choices(list(steps), weights=list(steps.values()), k=_STEPS):
        await group.step(action)
