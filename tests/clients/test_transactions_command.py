"""kafka-transactions, run as by a person, and the console consumer with the formatter of transactions'
records.

Except for the hanging transaction, which Apache Kafka prevents by default, all tests pass there, too.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from tests.clients.broker_process import TEST_SETTINGS, BrokerProcess, started
from tests.clients.cluster import Cluster, unique
from tests.clients.hanging_transaction import HANGING_PRODUCER_ID, leave_hanging
from tests.clients.polling import SECONDS_MAX
from tests.clients.share_probe import ShareProbe, ToolResult
from tests.clients.tools import TRANSACTIONS, print_partition

pytestmark = pytest.mark.barnabas

FORMATTER = "org.apache.kafka.tools.consumer.TransactionLogMessageFormatter"
SETTINGS = {
    **TEST_SETTINGS,
    "transaction.partition.verification.enable": "false",
    "transaction.state.log.num.partitions": "1",
    "log.retention.ms": "-1",  # a record of these tests is old
}
TRANSACTION_MS = 600_000
"""No transaction times out during the tests."""
LONG_AGO_MS = 1_600_000_000_000


class Scene:
    """A broker with two transactional ids: one that has committed, and one with an open transaction."""

    def __init__(self, broker: BrokerProcess, probe: ShareProbe) -> None:
        self.broker = broker
        self.cluster = Cluster(broker.address)
        self.topic = self.cluster.topic(2)
        self.ended, self.open = unique("ended"), unique("open")
        producer = self.producer(self.ended)
        producer.commit_transaction(SECONDS_MAX)
        self.producing = self.producer(self.open)
        self._probe = probe

    def producer(self, transactional_id: str) -> Producer:
        """A producer that has written a record in a transaction that is open."""
        producer = Producer(
            {
                "bootstrap.servers": self.broker.address,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": TRANSACTION_MS,
                "log_level": 0,
            }
        )
        producer.init_transactions(SECONDS_MAX)
        producer.begin_transaction()
        producer.produce(self.topic, b"x", partition=0)
        assert producer.flush(SECONDS_MAX) == 0
        return producer

    def command(self, *arguments: str) -> ToolResult:
        return self._probe.tool(TRANSACTIONS, *arguments)

    def described(self, transactional_id: str) -> dict[str, str]:
        header, row = self.command("describe", "--transactional-id", transactional_id).rows()
        return dict(zip(header, row, strict=False))

    def open_transactions(self, topic: str) -> list[str]:
        """The start offset of each producer's open transaction in partition 0, or `None`."""
        _, *rows = self.command("describe-producers", "--topic", topic, "--partition", "0").rows()
        return sorted(row[-1] for row in rows)


@pytest.fixture(scope="module")
def scene(barnabas_command: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    data = tmp_path_factory.mktemp("transactions") / "data"
    with started(BrokerProcess(barnabas_command, data, SETTINGS)) as broker:
        probe = ShareProbe(broker.address)
        try:
            yield Scene(broker, probe)
        finally:
            probe.kill()


def test_transactional_ids_are_listed(scene: Scene) -> None:
    header, *rows = scene.command("list").rows()
    assert header == ["TransactionalId", "Coordinator", "ProducerId", "TransactionState"]
    states = {row[0]: row[3] for row in rows}
    assert (states[scene.ended], states[scene.open]) == ("CompleteCommit", "Ongoing")


def test_filters_leave_the_others_out(scene: Scene) -> None:
    _, *matching = scene.command("list", "--transactional-id-pattern", "open.*").rows()
    assert [row[0] for row in matching] == [scene.open]
    _, *long = scene.command("list", "--duration-filter", "86400000").rows()
    assert long == []


def test_a_transactional_id_is_described(scene: Scene) -> None:
    ended, ongoing = scene.described(scene.ended), scene.described(scene.open)
    assert (ended["TransactionState"], ongoing["TransactionState"]) == ("CompleteCommit", "Ongoing")
    assert ongoing["TopicPartitions"] == f"{scene.topic}-0"
    assert ongoing["TransactionTimeoutMs"] == str(TRANSACTION_MS)


def test_an_unknown_transactional_id_is_an_error(scene: Scene) -> None:
    missing = scene.command("describe", "--transactional-id", "missing")
    assert "the ID could not be found" in missing.errors


def test_producers_of_a_partition_are_described(scene: Scene) -> None:
    assert scene.open_transactions(scene.topic) == ["2", "None"]


def test_a_transaction_whose_producer_is_gone_may_be_terminated(scene: Scene) -> None:
    gone = scene.producer(unique("gone"))
    name = next(row[0] for row in scene.command("list").rows() if row[0].startswith("gone"))
    assert scene.command("forceTerminateTransaction", "--transactionalId", name).exit_code == 0
    assert scene.described(name)["TransactionState"] in ("CompleteAbort", "Empty")
    with pytest.raises(KafkaException) as fenced:
        gone.commit_transaction(SECONDS_MAX)
    error: KafkaError = fenced.value.args[0]
    assert error.fatal() or error.txn_requires_abort()


def test_a_hanging_transaction_is_found_and_aborted(scene: Scene) -> None:
    topic = scene.cluster.topic()
    asyncio.run(leave_hanging(scene.broker.address, topic, timestamp_ms=LONG_AGO_MS))
    hanging = scene.command("find-hanging", "--topic", topic)
    header, row = hanging.rows()
    found = dict(zip(header, row, strict=True))
    assert (found["Topic"], found["StartOffset"]) == (topic, "0")
    assert found["ProducerId"] == str(HANGING_PRODUCER_ID)
    aborted = scene.command("abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    assert aborted.exit_code == 0, aborted.output
    assert scene.open_transactions(topic) == ["None"]
    _, *left = scene.command("find-hanging", "--topic", topic).rows()
    assert left == []


def test_a_transaction_that_its_producer_has_open_is_not_aborted(scene: Scene) -> None:
    """Apache Kafka does that: the producer gets a confirmed commit, but its records are aborted."""
    begin = scene.open_transactions(scene.topic)[0]
    refused = scene.command("abort", "--topic", scene.topic, "--partition", "0", "--start-offset", begin)
    assert refused.exit_code != 0
    assert "fenced" in refused.output + refused.errors
    assert begin in scene.open_transactions(scene.topic)


def test_the_records_are_read_by_kafkas_formatter(scene: Scene) -> None:
    read = print_partition(scene.broker.address, "__transaction_state", FORMATTER)
    records: list[dict[str, Any]] = []
    decoder = json.JSONDecoder()
    while read.strip():
        record, end = decoder.raw_decode(read.lstrip())
        records.append(record)
        read = read.lstrip()[end:]
    mine = [one for one in records if one["key"]["data"]["transactionalId"] == scene.ended]
    assert [one["value"]["data"]["transactionStatus"] for one in mine] == [0, 1, 2, 4]
    assert {one["key"]["type"] for one in mine} == {0}
    assert {one["value"]["version"] for one in mine} == {1}
    partitions = [one["value"]["data"]["transactionPartitions"] for one in mine]
    assert partitions == [
        None,
        [{"topic": scene.topic, "partitionIds": [0]}],
        [{"topic": scene.topic, "partitionIds": [0]}],
        [],
    ]
