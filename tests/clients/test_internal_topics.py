"""`__consumer_offsets` created by an administrator with few partitions: groups of every type work with it,
also after a restart and after a kill.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.clients.broker_process import TEST_SETTINGS, BrokerProcess, started
from tests.clients.cluster import Cluster, numbered
from tests.clients.confluent_polling import poll_some, settle, share_consumer, text
from tests.clients.polling import SECONDS_MAX
from tests.clients.test_classic_groups import Member, members, poll_until
from tests.clients.test_consumer_groups import NEW_PROTOCOL

pytestmark = pytest.mark.barnabas

OFFSETS = "__consumer_offsets"
PARTITIONS = 3
GROUPS = [f"group-{number}" for number in range(6)]


def partition_count(broker: BrokerProcess, name: str) -> int:
    """0 if the topic does not exist."""
    admin = AdminClient({"bootstrap.servers": broker.address})
    found = admin.list_topics(timeout=SECONDS_MAX).topics.get(name)
    return 0 if found is None else len(found.partitions)


def committed(broker: BrokerProcess, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": group})
    try:
        (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=SECONDS_MAX)
        assert found.error is None
        offset: int = found.offset
        return offset
    finally:
        consumer.close()


def commit(broker: BrokerProcess, group: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def read_as_member(broker: BrokerProcess, group: str, topic: str, count: int, **settings: object) -> None:
    """This number of records, with a commit."""
    member = Member(broker.address, group, topic, **settings)
    with members(member) as poll:
        poll_until(poll, lambda: len(member.values) == count, "it reads all")
        member.consumer.commit(asynchronous=False)


def shared(broker: BrokerProcess, group: str, topic: str, count: int) -> list[str]:
    """At least this number of records, accepted by a share group."""
    consumer, values = share_consumer(broker.address, group, topic), list[str]()
    while len(values) < count:
        messages = poll_some(consumer)
        settle(consumer, messages, consumer.acknowledge)
        values += map(text, messages)
    consumer.close()
    return values


@pytest.mark.parametrize("store", ["log", "topic"])
def test_groups_use_the_administrators_topic(barnabas_command: Path, tmp_path: Path, store: str) -> None:
    settings = {**TEST_SETTINGS, "share.state.store": store}
    with started(BrokerProcess(barnabas_command, tmp_path / "data", settings)) as broker:
        cluster = Cluster(broker.address)
        cluster.topic(PARTITIONS, name=OFFSETS)
        topic, sharers = cluster.topic(), cluster.group()
        expected = numbered(10)
        for round_number, end in enumerate((broker.stop, broker.kill, None), start=1):
            assert partition_count(broker, OFFSETS) == PARTITIONS
            cluster.produce(topic, expected)
            for group in GROUPS:
                commit(broker, group, topic, round_number)
            read_as_member(broker, "classic", topic, 10)
            read_as_member(broker, "consumer", topic, 10, **NEW_PROTOCOL)
            assert sorted(shared(broker, sharers, topic, 10)) == sorted(expected)
            read = {group: committed(broker, group, topic) for group in ("classic", "consumer")}
            if end is not None:
                end()
                broker.start()
            assert [committed(broker, group, topic) for group in GROUPS] == [round_number] * len(GROUPS)
            assert {group: committed(broker, group, topic) for group in read} == read
            # Share state has offsets of its own in the log store.
            assert min(read.values()) >= 10 * round_number


def test_a_look_up_creates_the_topic_of_the_setting(barnabas_command: Path, tmp_path: Path) -> None:
    settings = {**TEST_SETTINGS, "offsets.topic.num.partitions": "7"}
    with started(BrokerProcess(barnabas_command, tmp_path / "data", settings)) as broker:
        assert partition_count(broker, OFFSETS) == 0
        topic = Cluster(broker.address).topic()
        assert committed(broker, "nobody", topic) < 0
        assert partition_count(broker, OFFSETS) == 7
