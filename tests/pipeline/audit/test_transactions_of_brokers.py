"""Acknowledgements in transactions of a real broker, in both stores of share state: one outcome for each
delivery.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from barnabas.client import Producer, ShareConsumer, ShareRecord
from barnabas.pipeline.audit.tables import VIOLATION
from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster import Cluster
from tests.pipeline.audit.auditing import Audited, offsets_of
from tests.pipeline.audit.state_topic import AuditedStateTopic

RECORD_COUNT = 20
GROUP = "copiers"
ALL = list(range(RECORD_COUNT))

Record = ShareRecord[bytes | None, bytes | None]


def audited(data_directory: Path, store: str) -> Audited | AuditedStateTopic:
    if store == "topic":
        return AuditedStateTopic(data_directory, groups=[GROUP])
    return Audited(data_directory, ("orders", 0), groups=[GROUP])


async def poll_all(consumer: ShareConsumer[bytes | None, bytes | None]) -> list[Record]:
    records: list[Record] = []
    while len(records) < RECORD_COUNT:
        records += await consumer.poll()
    return records


def test_an_aborted_and_a_committed_transaction_are_one_outcome_each(
    broker_with_store: BrokerProcess, store: str, tmp_path: Path
) -> None:
    cluster = Cluster(broker_with_store.address)
    topic = cluster.topic(name="orders")
    cluster.produce(topic, [str(number) for number in ALL])
    cluster.set_group(GROUP, {"share.auto.offset.reset": "earliest"})
    data_directory = tmp_path / "data"

    async def run() -> None:
        async with (
            Producer(broker_with_store.address, transactional_id="copier") as producer,
            ShareConsumer(broker_with_store.address, group=GROUP, topics=[topic]) as consumer,
        ):
            await producer.init_transactions()
            for commit in (False, True):
                records = await poll_all(consumer)
                producer.begin_transaction()
                await producer.acknowledge(records)
                count = 1 if commit else 0
                assert offsets_of(audited(data_directory, store).deliveries) == ALL * count
                await (producer.commit_transaction() if commit else producer.abort_transaction())

    asyncio.run(run())
    found = audited(data_directory, store)
    assert found.table(VIOLATION) == []
    assert offsets_of(found.deliveries, outcome="available", deliveryCount=1) == ALL
    assert offsets_of(found.deliveries, outcome="acknowledged", deliveryCount=2) == ALL
    assert len(offsets_of(found.deliveries)) == 2 * RECORD_COUNT
