"""Wrong or impossible options: one clear error that names the option."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from benchmarks.brokers.process import LocalBroker
from confluent_kafka import Consumer

from barnabas.pipeline.errors import OptionError, PipelineError
from barnabas.pipeline.share_source.settings import parse_settings
from barnabas.pipeline.share_source.source import ShareDataSource
from tests.clients.cluster import Cluster, unique
from tests.clients.polling import eventually
from tests.pipeline.share_source.driving import query

NEEDED = {"servers": "127.0.0.1:9092", "group": "g", "topics": "orders"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"servers": ""}, "^servers: is needed"),
        ({"servers": "127.0.0.1:x"}, "^servers: '127.0.0.1:x' is not the address of a broker"),
        ({"group": " "}, "^group: is needed"),
        ({"topics": "a,,b"}, "^topics: 'a,,b' is not names"),
        ({"columns": "value,colour"}, "^columns: there is no column 'colour'"),
        ({"maxRecordsPerBatch": "0"}, "^maxRecordsPerBatch: '0' is not a whole number from 1"),
        ({"maxWaitMs": "soon"}, "^maxWaitMs: 'soon' is not a whole number"),
        ({"renewLocks": "yes"}, "^renewLocks: 'yes' is not true or false"),
        ({"startingOffsets": "1h"}, "^startingOffsets: '1h' is not earliest, latest, or such as"),
        ({"startingOffsets": "by_duration:P"}, "^startingOffsets: "),
        ({"isolation": "serializable"}, "^isolation: 'serializable' is not read_uncommitted or"),
        ({"ackDir": " "}, "^ackDir: is empty"),
        ({"failOnDataLoss": "false"}, "^sideTable: is needed with failOnDataLoss=false"),
        ({"onCorrupt": "sideTable"}, "^sideTable: is needed with onCorrupt=sideTable"),
        ({"maxRecordPerBatch": "5"}, "^maxrecordperbatch: there is no such option; did you mean maxRecords"),
        ({"kafka.security.protocol": "SSL2"}, "^kafka.security.protocol: "),
    ],
    ids=str,
)
def test_a_wrong_option_is_named(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse_settings(NEEDED | options)


@pytest.mark.parametrize(
    ("given", "setting"),
    [
        ("Earliest", "earliest"),
        ("latest", "latest"),
        ("by_duration:PT1H30M", "by_duration:PT1H30M"),
        ("BY_DURATION:p7d", "by_duration:P7D"),
    ],
)
def test_starting_offsets_have_the_values_of_the_group_setting(given: str, setting: str) -> None:
    assert parse_settings(NEEDED | {"startingOffsets": given}).starting_offsets == setting


def test_a_topic_that_does_not_exist_is_an_error(cluster: Cluster) -> None:
    topic, missing = cluster.topic(), unique("missing")
    reading = query(cluster, cluster.group(), f"{topic},{missing}")
    with pytest.raises(PipelineError, match=f"^topics: There is no topic {missing}"), reading.running():
        reading.trigger()


def test_a_group_of_another_type_is_an_error(broker: LocalBroker, cluster: Cluster) -> None:
    if broker.name == "barnabas":
        pytest.skip("it has share groups only")
    topic, group = cluster.topic(), unique("group")
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group, "log_level": 0})
    with ExitStack() as closing:
        closing.callback(consumer.close)
        consumer.subscribe([topic])
        eventually(lambda: consumer.poll(0.1) or consumer.assignment(), awaited="the consumer has joined")
        reading = query(cluster, group, topic)
        with pytest.raises(PipelineError, match=f"^group: {group} is no share group"), reading.running():
            eventually(reading.trigger, awaited="it is refused")


def test_a_checkpoint_of_another_group_is_an_error(cluster: Cluster) -> None:
    topic = cluster.topic()
    cluster.produce(topic, ["one"])
    reading = query(cluster, cluster.group(), topic)
    with reading.running():
        reading.drain(1)
    reading.options["group"] = cluster.group()
    with pytest.raises(PipelineError, match=r"^group: the checkpoint belongs to group-"), reading.running():
        reading.trigger()


def test_a_broker_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.pipeline.share_source.group.CONNECT_MS", 100)
    source = ShareDataSource(NEEDED | {"servers": "127.0.0.1:1"})
    reader = source.streamReader(source.schema())
    with pytest.raises(PipelineError, match=r"^servers: .*127\.0\.0\.1:1 "):
        reader.prepareForTriggerAvailableNow()
    reader.stop()
