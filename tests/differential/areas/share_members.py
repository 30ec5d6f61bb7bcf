"""Members of a share group: their joins, fetches, acknowledgements and ends of sessions."""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

from tests.differential.stage import Stage

_LOADING_MS = 300
"""Kafka reads a share-partition's state after it has answered the first fetch; a fetch that waits gets the
records.
"""
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)


class Partition(NamedTuple):
    """A partition of one of the topics."""

    topic_id: UUID
    number: int


Batches = dict[Partition, list[dict[str, Any]]]
"""The acknowledgement batches of a request."""


class Member:
    """One member, on a connection of its own."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.member_id = f"member-{number}"
        self.epoch = 0
        self.session_epoch = 0
        self.is_in_group = number == 1
        self.held: list[tuple[Partition, int, int]] = []
        """(partition, first offset, last offset) of the acquired records that are not acknowledged."""


class ShareGroup:
    """A group of two members on a topic or two.

    With low limits there is one partition, because Kafka orders several partitions by their hash.
    """

    def __init__(self, stage: Stage, topics: dict[str, UUID], partition_count: int) -> None:
        self.stage = stage
        self.chance = stage.chance
        self.topic_names = [stage.name(name) for name in topics]
        self.partitions = [
            Partition(topic_id, index) for topic_id in topics.values() for index in range(partition_count)
        ]
        self.partition_count = partition_count
        self.group_id = stage.name("g")
        self.members = [Member(1), Member(2)]
        for partition in self.partitions:
            stage.numbering(*partition)

    async def set(self, name: str, value: str) -> None:
        config = {"name": name, "config_operation": 0, "value": value}
        resource = {"resource_type": 32, "resource_name": self.group_id, "configs": [config]}
        await self.stage.ask(0, "incremental_alter_configs", resources=[resource], validate_only=False)
        await self.stage.settle()

    async def begin(self) -> None:
        """Waits until the first member has its partitions, in the group's newest epoch."""
        await self.set("share.auto.offset.reset", "earliest")
        member = self.members[0]
        await self.stage.quietly(**self.heartbeat(member, 0, self.topic_names))
        await self.stage.until(lambda: self.is_assigned(member))
        await self.stage.until(lambda: self.is_loaded(member))
        member.session_epoch = 0

    async def is_loaded(self, member: Member) -> bool:
        """Whether the first answer of a session has all partitions."""
        response = await self.stage.quietly(
            member.number, "share_fetch", **self.fetch_fields(member, 0), topics=self.topics({}, first=True)
        )
        return sum(len(topic.partitions) for topic in response.responses) == len(self.partitions)

    async def is_assigned(self, member: Member) -> bool:
        response = await self.stage.quietly(**self.heartbeat(member, 0, self.topic_names))
        member.epoch = response.member_epoch
        return len(response.assignment.topic_partitions) == len(self.topic_names)

    def heartbeat(self, member: Member, epoch: int, topics: list[str] | None) -> dict[str, Any]:
        return {
            "connection": member.number,
            "api": "share_group_heartbeat",
            "group_id": self.group_id,
            "member_id": member.member_id,
            "member_epoch": epoch,
            "rack_id": None,
            "subscribed_topic_names": topics,
        }

    async def join(self, member: Member) -> None:
        response = await self.stage.ask(**self.heartbeat(member, 0, self.topic_names))
        member.epoch = response.member_epoch
        member.is_in_group = True

    def topics(self, batches: Batches, *, first: bool = False) -> list[dict[str, Any]]:
        by_id: dict[UUID, list[dict[str, Any]]] = {}
        for one in self.partitions:
            if first or one in batches:
                asked = {"partition_index": one.number, "acknowledgement_batches": batches.get(one, [])}
                by_id.setdefault(one.topic_id, []).append(asked)
        return [{"topic_id": topic_id, "partitions": asked} for topic_id, asked in by_id.items()]

    def fetch_fields(self, member: Member, epoch: int) -> dict[str, Any]:
        return {
            "group_id": self.group_id,
            "member_id": member.member_id,
            "share_session_epoch": epoch,
            "max_wait": _LOADING_MS,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
            "forgotten_topics_data": [],
        }

    def note_fetched(self, member: Member, response: Any) -> None:
        if response.error_code != 0:
            member.session_epoch = 0
            return
        member.session_epoch += 1
        acquired = [
            (Partition(topic.topic_id, one.partition_index), records.first_offset, records.last_offset)
            for topic in response.responses
            for one in topic.partitions
            for records in one.acquired_records
        ]
        member.held += sorted(acquired, key=lambda one: (self.partitions.index(one[0]), one[1]))

    async def send_acknowledgements(self, member: Member, batches: Batches, *, renews: bool = False) -> Any:
        epoch = member.session_epoch
        response = await self.stage.ask(
            member.number,
            "share_acknowledge",
            2 if renews else self.chance.choice([1, 2]),
            group_id=self.group_id,
            member_id=member.member_id,
            share_session_epoch=epoch,
            is_renew_ack=renews,
            topics=self.topics(batches),
        )
        member.session_epoch = epoch + 1 if epoch and response.error_code == 0 else 0
        return response

    async def end_session(self, member: Member) -> None:
        if member.session_epoch:
            member.session_epoch = -1
        await self.send_acknowledgements(member, {})
        await self.stage.settle()
        member.session_epoch = 0
        member.held.clear()
