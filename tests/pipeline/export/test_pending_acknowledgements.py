"""Records that are acknowledged in an open transaction: exported as if the transaction were aborted."""

from __future__ import annotations

import asyncio

from benchmarks.brokers.process import LocalBroker

from barnabas.client import Producer, ShareConsumer, ShareRecord
from barnabas.pipeline.export.manifest import ACCEPTED, AVAILABLE, ShareGroup
from barnabas.pipeline.export.planning import plan_export
from tests.clients.cluster import Cluster, unique
from tests.pipeline.brokers import SharedBrokers
from tests.pipeline.export.both_ways import export_request, produce_all_kinds

RECORD_COUNT = 6


async def exported(broker: LocalBroker, topic: str, group_id: str) -> list[tuple[int, int, str, int]]:
    """First and last offset, state and delivery count of each range in flight."""
    groups = (await plan_export(export_request(broker, topic))).share_groups
    (group,) = [one for one in groups if one.group_id == group_id]
    assert isinstance(group, ShareGroup)
    (position,) = group.positions
    return [
        (one.first_offset, one.last_offset, one.state, one.delivery_count) for one in position.in_flight or ()
    ]


def test_an_open_transaction_is_exported_as_an_aborted_one(brokers: SharedBrokers) -> None:
    broker = brokers["barnabas"]
    cluster = Cluster(broker.address)
    topic, group_id = cluster.topic(), unique("copiers")
    cluster.set_group(group_id, {"share.auto.offset.reset": "earliest"})
    produce_all_kinds(broker, topic, 0, RECORD_COUNT)

    async def run() -> None:
        async with (
            Producer(broker.address, transactional_id=unique("copier")) as producer,
            ShareConsumer(broker.address, group=group_id, topics=[topic]) as consumer,
        ):
            await producer.init_transactions()
            records: list[ShareRecord[bytes | None, bytes | None]] = []
            while len(records) < RECORD_COUNT:
                records += await consumer.poll()
            records[-1].accept()
            await consumer.commit()
            async with producer.transaction():
                await producer.acknowledge(records[:-1])
                last = RECORD_COUNT - 1
                assert await exported(broker, topic, group_id) == [
                    (0, last - 1, AVAILABLE, 1),
                    (last, last, ACCEPTED, 1),
                ]
            assert await exported(broker, topic, group_id) == []

    asyncio.run(run())
