"""Offsets that members of ordinary groups commit, and look up again."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from tests.simulation.client import SimulatedClient
from tests.simulation.world import World

REFUSALS = frozenset(
    {
        ErrorCode.illegal_generation,
        ErrorCode.unknown_member_id,
        ErrorCode.rebalance_in_progress,
        ErrorCode.stale_member_epoch,
        ErrorCode.fenced_member_epoch,
        ErrorCode.fenced_instance_id,
        ErrorCode.group_id_not_found,
        ErrorCode.unknown_topic_id,
        ErrorCode.unknown_topic_or_partition,
    }
)
"""These errors mean that nothing was written. Any other error may arrive too late to mean that."""


class GroupOffsets:
    """The offsets of one group, over one member's connection."""

    def __init__(self, world: World, group_id: str, client: SimulatedClient) -> None:
        self._world = world
        self._group_id = group_id
        self._client = client

    async def commit(
        self, partitions: Collection[TopicIdPartition], *, member_id: str, epoch: int
    ) -> ErrorCode:
        """Commits a new offset for each of at least one partition; returns the error code of the first."""
        await self._client.connect()
        ordinary, now_ms = self._world.ordinary, self._world.now_ms
        incarnation = ordinary.incarnation
        sent = {one: ordinary.committed(self._group_id, one).send(now_ms) for one in partitions}
        response = await self._client.ask(
            "offset_commit",
            group_id=self._group_id,
            member_id=member_id,
            generation_id_or_member_epoch=epoch,
            topics=_topics({one: commit.offset for one, commit in sent.items()}),
        )
        codes = _codes(response.topics)
        for partition, commit in sent.items():
            model, code = ordinary.committed(self._group_id, partition), codes[partition]
            if incarnation != ordinary.incarnation:
                continue
            if code is ErrorCode.none:
                model.confirm(commit, self._world.now_ms)
            elif code in REFUSALS:
                model.refuse(commit)
        return codes[next(iter(sent))]

    async def fetch(
        self, partitions: Collection[TopicIdPartition], *, require_stable: bool = False
    ) -> dict[TopicIdPartition, ErrorCode]:
        """Looks up the committed offsets. They must be possible, and the error codes must be among those
        allowed.
        """
        ordinary, sent_ms = self._world.ordinary, self._world.now_ms
        incarnation = ordinary.incarnation
        topics = [{"topic_id": one.topic_id, "partition_indexes": [one.partition]} for one in partitions]
        response = await self._client.ask(
            "offset_fetch",
            groups=[{"group_id": self._group_id, "topics": topics, "member_epoch": -1}],
            require_stable=require_stable,
        )
        (group,) = response.groups
        if group.error_code is not ErrorCode.none or incarnation != ordinary.incarnation:
            return {}
        codes: dict[TopicIdPartition, ErrorCode] = {}
        for topic in group.topics:
            for one in topic.partitions:
                partition = TopicIdPartition(topic.topic_id, one.partition_index)
                codes[partition] = one.error_code
                is_deleted = self._world.model.partition(partition).is_deleted
                if one.error_code is ErrorCode.none and not is_deleted:
                    ordinary.committed(self._group_id, partition).saw(
                        one.committed_offset, sent_ms=sent_ms, now_ms=self._world.now_ms
                    )
        return codes


def _topics(offsets: dict[TopicIdPartition, int]) -> list[dict[str, Any]]:
    return [
        {
            "topic_id": partition.topic_id,
            "partitions": [{"partition_index": partition.partition, "committed_offset": offset}],
        }
        for partition, offset in offsets.items()
    ]


def _codes(topics: Any) -> dict[TopicIdPartition, ErrorCode]:
    return {
        TopicIdPartition(topic.topic_id, one.partition_index): one.error_code
        for topic in topics
        for one in topic.partitions
    }
