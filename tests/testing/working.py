"""Producers and consumers of the tests of the kit."""

from __future__ import annotations

from barnabas.client import Producer, ShareConsumer, ShareRecord
from barnabas.testing.blocking_broker import BlockingBroker
from tests.testing.conftest import GROUP, TOPIC

Consumer = ShareConsumer[bytes | None, bytes | None]
Record = ShareRecord[bytes | None, bytes | None]


async def produce(broker: BlockingBroker, *values: bytes, topic: str = TOPIC) -> None:
    async with Producer(broker.bootstrap_servers) as producer:
        for value in values:
            await producer.send(topic, value)


def consumer_of(broker: BlockingBroker, *, group: str = GROUP) -> Consumer:
    return ShareConsumer(broker.bootstrap_servers, group=group, topics=[TOPIC])


async def take(consumer: Consumer) -> Record:
    """The next record."""
    (record,) = await consumer.poll(max_records=1)
    return record
