"""Kafka's own tools read the share state in `__share_group_state`: the console consumer with its formatter,
and the log dump with its decoder.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from confluent_kafka import ShareConsumer

from barnabas.storage.format.partition_metadata import encode_id
from tests.clients.broker_process import TEST_SETTINGS, BrokerProcess, started
from tests.clients.cluster import Cluster, numbered
from tests.clients.polling import SECONDS_MAX, eventually
from tests.clients.tools import DUMP_LOG, print_partition, run_tool

pytestmark = pytest.mark.barnabas

FORMATTER = "org.apache.kafka.tools.consumer.group.share.ShareGroupStateMessageFormatter"
SETTINGS = {
    **TEST_SETTINGS,
    "share.state.store": "topic",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.snapshot.update.records.per.snapshot": "3",
}
RECORDS = 10


class Scene(NamedTuple):
    """A stopped broker whose one group has accepted all records of a topic, one at a time."""

    broker: BrokerProcess
    group: str
    topic_id: UUID

    @property
    def segment(self) -> Path:
        return self.broker.data_directory / "__share_group_state-0" / f"{0:020d}.log"

    @property
    def key(self) -> dict[str, Any]:
        """The keys of the group's records."""
        return {"groupId": self.group, "topicId": encode_id(self.topic_id), "partition": 0}


@pytest.fixture(scope="module")
def scene(barnabas_command: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    data = tmp_path_factory.mktemp("state-topic") / "data"
    with started(BrokerProcess(barnabas_command, data, SETTINGS)) as broker:
        cluster = Cluster(broker.address)
        topic, group = cluster.topic(), cluster.group()
        cluster.produce(topic, numbered(RECORDS))
        accept_each(broker, group, topic)
        yield Scene(broker, group, cluster.topic_id(topic))


def accept_each(broker: BrokerProcess, group: str, topic: str) -> None:
    consumer = ShareConsumer(
        {"bootstrap.servers": broker.address, "group.id": group, "share.acknowledgement.mode": "explicit"}
    )
    consumer.subscribe([topic])
    accepted = 0

    def accept() -> bool:
        nonlocal accepted
        for message in consumer.poll(0.5):
            assert message.error() is None
            consumer.acknowledge(message)
            consumer.commit_sync(SECONDS_MAX)
            accepted += 1
        return accepted == RECORDS

    eventually(accept, awaited="all records are accepted")
    consumer.close()


def documents(printed: str) -> list[dict[str, Any]]:
    """The JSON documents, which the formatter prints one behind the other."""
    found: list[dict[str, Any]] = []
    position = 0
    while position < len(printed):
        document, position = json.JSONDecoder().raw_decode(printed, position)
        found.append(document)
    return found


def test_the_console_consumer_prints_snapshots_and_updates(scene: Scene) -> None:
    printed = print_partition(scene.broker.address, "__share_group_state", FORMATTER)
    records = documents(printed)
    assert {record["key"]["type"] for record in records} == {0, 1}
    assert all(record["key"]["data"] == scene.key for record in records)
    values = [record["value"]["data"] for record in records]
    assert (values[0]["startOffset"], values[0]["stateBatches"]) == (-1, [])
    assert values[-1]["startOffset"] == RECORDS - 1
    (last,) = values[-1]["stateBatches"]
    assert (last["firstOffset"], last["lastOffset"], last["deliveryState"]) == (RECORDS - 1, RECORDS - 1, 2)
    snapshots = [value["snapshotEpoch"] for value in values if "stateEpoch" in value]
    assert snapshots == list(range(len(snapshots)))
    assert len(snapshots) > 2


def test_the_log_dump_decodes_them(scene: Scene) -> None:
    dumped = run_tool(DUMP_LOG, "--share-group-state-decoder", "--files", str(scene.segment))
    assert dumped.count("isvalid: true") > RECORDS
    assert '"type":"0"' in dumped
    assert '"type":"1"' in dumped
    assert f'"groupId":"{scene.group}"' in dumped
    assert '"deliveryCompleteCount":1' in dumped
