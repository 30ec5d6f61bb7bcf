"""A client that sends forged transaction markers (WriteTxnMarkers is open to all clients).

It knows everything that a client can find out: the producers and their epochs. None of its markers may change
the outcome of a transaction, which the models of the others check, and no impossible coordinator epoch may
get into a log.
"""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas.coordinator.metadata.topic_names import OFFSETS_TOPIC
from barnabas.protocol.errors import ErrorCode
from tests.coordinator.group.partition_count import GROUP_PARTITION_COUNT
from tests.simulation.client import Disconnected
from tests.simulation.model import Violation
from tests.simulation.world import World

_PAUSE_SECONDS_MAX = 0.4
_FOREIGN_EPOCH = 2**31 - 1


class MarkerForger:
    """One such client."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._random = world.random("forger")
        self._client = world.client("forger")

    async def run(self) -> None:
        while not self._world.is_ending:
            await asyncio.sleep(self._random.uniform(0.02, _PAUSE_SECONDS_MAX))
            try:
                await self._forge()
            except Disconnected:
                self._client.disconnect()

    async def _forge(self) -> None:
        listed = await self._client.ask("list_transactions")
        transactional = {one.producer_id for one in listed.transaction_states}
        place = self._any_partition()
        if place is None:
            return
        asked = {"name": place[0], "partition_indexes": [place[1]]}
        described = await self._client.ask("describe_producers", topics=[asked])
        producers = described.topics[0].partitions[0].active_producers
        victims = [one for one in producers if one.producer_id in transactional]
        if victims:
            await self._write(self._random.choice(victims), *place)

    async def _write(self, victim: Any, topic: str, partition: int) -> None:
        coordinator_epoch = self._random.choice((0, 1, victim.coordinator_epoch, _FOREIGN_EPOCH))
        marker: dict[str, Any] = {
            "producer_id": victim.producer_id,
            "producer_epoch": max(victim.producer_epoch + self._random.choice((-1, 0, 0, 1, 9)), 0),
            "transaction_result": self._random.random() < 0.5,
            "coordinator_epoch": max(coordinator_epoch, 0),
            "topics": [{"name": topic, "partition_indexes": [partition]}],
            "transaction_version": self._random.choice((0, 2)),
        }
        response = await self._client.ask("write_txn_markers", markers=[marker])
        code = response.markers[0].topics[0].partitions[0].error_code
        self._world.trace.event(f"a marker is forged in {topic}-{partition}: {code.name}")
        if code is ErrorCode.none and marker["coordinator_epoch"] == _FOREIGN_EPOCH:
            raise Violation(f"{topic}-{partition} accepted the marker of an impossible coordinator")

    def _any_partition(self) -> tuple[str, int] | None:
        ledger = self._world.ledger
        topics = [one for one in (*self._world.topics.values(), ledger) if one is not None]
        if not topics:
            return None
        if self._random.random() < 0.2:
            return OFFSETS_TOPIC, self._random.randrange(GROUP_PARTITION_COUNT)
        topic = self._random.choice(topics)
        return topic.name, self._random.randrange(topic.partition_count)
