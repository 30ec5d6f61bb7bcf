"""The parts of the client matrix with aiokafka: see `programs`. Its admin client cannot delete a group, so
confluent-kafka's does it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

from tests.clients.cluster import confluent_admin
from tests.clients.matrix.facts import Facts, run_parts
from tests.clients.untyped_clients import aiokafka

aiokafka_admin: Any = import_module("aiokafka.admin")
config_resource: Any = import_module("aiokafka.admin.config_resource")


class AiokafkaRun:
    def __init__(self, address: str, prefix: str) -> None:
        self._settings = {"bootstrap_servers": address}
        self._prefix = prefix
        self._admin: Any

    def part(self, name: str) -> Callable[[], Facts]:
        """A part that is called from outside of the loop."""

        async def do() -> Facts:
            self._admin = aiokafka_admin.AIOKafkaAdminClient(**self._settings)
            await self._admin.start()
            try:
                facts: Facts = await getattr(self, name)()
            finally:
                await self._admin.close()
            return facts

        return lambda: asyncio.run(do())

    async def basic(self) -> Facts:
        topic = f"{self._prefix}-basic"
        new = aiokafka_admin.NewTopic(topic, 1, 1, topic_configs={"retention.ms": "90000"})
        await self._admin.create_topics([new])
        await self._admin.create_partitions({topic: aiokafka_admin.NewPartitions(2)})
        resource = config_resource.ConfigResource(config_resource.ConfigResourceType.TOPIC, topic)
        resource.configs = {"retention.ms": "90000", "max.message.bytes": "50000"}
        await self._admin.alter_configs([resource])
        resource.configs = None
        (response,) = await self._admin.describe_configs([resource])
        config = {entry[0]: entry[1] for entry in response.resources[0][4]}
        listed = await self._admin.list_topics()
        (described,) = await self._admin.describe_topics([topic])
        await self._produce(topic, 10, 2)
        consumer = await self._consumer(topic, topic)
        values: set[bytes] = set()
        await _until(lambda: _poll(values, consumer), lambda: len(values) == 10)
        await consumer.commit()
        await consumer.stop()
        facts: Facts = {
            "partitions": len(described["partitions"]),
            "retention": int(config["retention.ms"]),
            "bytes": int(config["max.message.bytes"]),
            "listed": topic in listed,
            "read": len(values),
            "committed": await self._committed(topic),
            "group": topic in {one[0] for one in await self._admin.list_consumer_groups()},
        }
        others = confluent_admin.AdminClient({"bootstrap.servers": self._settings["bootstrap_servers"]})
        others.delete_consumer_groups([topic])[topic].result()
        await self._admin.delete_topics([topic])
        return facts

    async def rebalance(self) -> Facts:
        topic = f"{self._prefix}-rebalance"
        await self._admin.create_topics([aiokafka_admin.NewTopic(topic, 2, 1)])
        await self._produce(topic, 20, 2)
        values: set[bytes] = set()
        again: set[bytes] = set()

        def has(count: int, *consumers: Any) -> bool:
            return [len(one.assignment()) for one in consumers] == [count] * len(consumers)

        first = await self._consumer(topic, topic)
        await _until(lambda: _poll(values, first), lambda: len(values) == 20 and has(2, first))
        await first.commit()
        second = await self._consumer(topic, topic)
        await _until(lambda: _poll(values, first, second), lambda: has(1, first, second))
        await self._produce(topic, 20, 2)
        await _until(lambda: _poll(again, first, second), lambda: len(again) == 20)
        for consumer in (first, second):
            await consumer.commit()
        await first.stop()
        await _until(lambda: _poll(values, second), lambda: has(2, second))
        await second.stop()
        return {"read": len(values), "again": len(again), "committed": await self._committed(topic)}

    async def transactions(self) -> Facts:
        source, target = f"{self._prefix}-input", f"{self._prefix}-output"
        await self._admin.create_topics([aiokafka_admin.NewTopic(name, 1, 1) for name in (source, target)])
        await self._produce(source, 5, 1)
        producer = aiokafka.AIOKafkaProducer(**self._settings, transactional_id=f"{self._prefix}-tx")
        await producer.start()
        await producer.begin_transaction()
        await producer.send_and_wait(target, b"dropped")
        await producer.abort_transaction()
        await producer.begin_transaction()
        for number in range(5):
            await producer.send(target, f"record-{number}".encode())
        await producer.send_offsets_to_transaction({aiokafka.TopicPartition(source, 0): 5}, source)
        await producer.commit_transaction()
        await producer.stop()
        reader = await self._consumer(target, target, isolation_level="read_committed")
        seen: set[bytes] = set()
        await _until(lambda: _poll(seen, reader), lambda: len(seen) == 5)
        await reader.stop()
        return {"seen": len(seen), "dropped": b"dropped" in seen, "committed": await self._committed(source)}

    async def _produce(self, topic: str, count: int, partition_count: int) -> None:
        producer = aiokafka.AIOKafkaProducer(**self._settings, acks="all")
        await producer.start()
        for number in range(count):
            await producer.send(topic, f"record-{number}".encode(), partition=number % partition_count)
        await producer.stop()

    async def _consumer(self, group: str, topic: str, **settings: object) -> Any:
        consumer = aiokafka.AIOKafkaConsumer(
            topic,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=300,
            metadata_max_age_ms=1000,
            **self._settings,
            **settings,
        )
        await consumer.start()
        return consumer

    async def _committed(self, group: str) -> int:
        found = await self._admin.list_consumer_group_offsets(group)
        return sum(one.offset for one in found.values())


async def _poll(values: set[bytes], *consumers: Any) -> None:
    for consumer in consumers:
        for records in (await consumer.getmany(timeout_ms=100)).values():
            values.update(record.value for record in records)


async def _until(attempt: Callable[[], Awaitable[None]], is_so: Callable[[], bool]) -> None:
    while not is_so():
        await attempt()


if __name__ == "__main__":
    run = AiokafkaRun(*sys.argv[1:3])
    run_parts({name: run.part(name) for name in ("basic", "rebalance", "transactions")}, sys.argv[3:])
