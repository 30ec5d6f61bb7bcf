"""Producers: idempotent ones that repeat a batch until it is confirmed, plain ones that send each
batch once.
"""

from __future__ import annotations

import asyncio
from itertools import count
from random import Random
from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from tests.simulation.client import Disconnected
from tests.simulation.world import World

_TRIES_MAX = 30
_PAUSE_MS_MAX = 250
_BATCH_SIZES = (1, 1, 2, 3, 7, 20)
_STALE_PRODUCER = (
    ErrorCode.out_of_order_sequence_number,
    ErrorCode.unknown_producer_id,
    ErrorCode.invalid_producer_epoch,
)
_GONE = (ErrorCode.unknown_topic_id, ErrorCode.unknown_topic_or_partition)


class Producer:
    """One producer of records whose values never repeat."""

    def __init__(self, world: World, number: int) -> None:
        self._world = world
        self._name = f"producer-{number}"
        self._random: Random = world.random(self._name)
        self._client = world.client(self._name)
        self._is_idempotent = self._random.random() < 0.6
        self._values = count()
        self._producer_id = -1
        self._sequences: dict[TopicIdPartition, int] = {}

    async def run(self) -> None:
        while not self._world.is_ending:
            await asyncio.sleep(self._random.uniform(0, _PAUSE_MS_MAX) / 1000)
            topics = list(self._world.topics.values())
            if topics:
                await self._produce(self._random.choice(self._random.choice(topics).partitions))

    async def produce_everywhere(self) -> None:
        """One batch to each partition."""
        for topic in list(self._world.topics.values()):
            for partition in topic.partitions:
                await self._produce(partition)

    async def _produce(self, partition: TopicIdPartition) -> None:
        """One batch to one partition."""
        values = [
            f"{self._name}/{next(self._values)}".encode() for _ in range(self._random.choice(_BATCH_SIZES))
        ]
        model = self._world.model.partition(partition)
        model.sent.update(values)
        if not self._is_idempotent:
            await self._try(partition, values, tries_max=1)
            return
        with model.repeating(values, self._world.machine.clock.wall_ms()):
            await self._try(partition, values, tries_max=_TRIES_MAX)

    async def _try(self, partition: TopicIdPartition, values: list[bytes], *, tries_max: int) -> None:
        """Sends the batch until there is a final answer."""
        model = self._world.model.partition(partition)
        generation = model.generation
        for _ in range(tries_max):
            answer = await self._send(partition, values)
            if answer is not None and answer.error_code in _GONE:
                return
            if answer is not None and answer.error_code is ErrorCode.none:
                self._sequences[partition] = self._sequences.get(partition, 0) + len(values)
                if model.generation == generation:
                    model.confirm(answer.base_offset, values)
                return
            if answer is not None and answer.error_code in _STALE_PRODUCER:
                self._producer_id = -1
                return
            await asyncio.sleep(self._random.uniform(20, 300) / 1000)
        # The last batch may be in the log or not, so the sequence is unknown.
        self._producer_id = -1

    async def _send(self, partition: TopicIdPartition, values: list[bytes]) -> Any:
        """The partition's part of the response; None if there was no response."""
        try:
            if self._is_idempotent and self._producer_id < 0:
                await self._become_producer()
            response = await self._client.ask("produce", **self._request(partition, values))
        except Disconnected:
            return None
        answer = response.responses[0].partition_responses[0]
        self._world.trace.event(
            f"{self._name} {partition.topic_id.hex[:4]}-{partition.partition} {len(values)} records: "
            f"{answer.error_code.name} at {answer.base_offset}"
        )
        return answer

    async def _become_producer(self) -> None:
        response = await self._client.ask("init_producer_id", transaction_timeout=1000)
        if response.error_code is not ErrorCode.none:
            raise Disconnected
        self._producer_id = response.producer_id
        self._sequences.clear()

    def _request(self, partition: TopicIdPartition, values: list[bytes]) -> dict[str, Any]:
        options: dict[str, int] = {}
        if self._is_idempotent:
            options = {
                "producer_id": self._producer_id,
                "producer_epoch": 0,
                "base_sequence": self._sequences.get(partition, 0),
            }
        wall_ms = self._world.machine.clock.wall_ms()
        keyed = self._world.keys.records(values)
        records = self._world.keys.packed(self._world.batches.batch(keyed, wall_ms, **options))
        data = {
            "topic_id": partition.topic_id,
            "partition_data": [{"index": partition.partition, "records": records}],
        }
        return {"acks": self._random.choice((-1, 1)), "topic_data": [data]}
