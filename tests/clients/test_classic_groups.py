"""Ordinary consumers in groups, of several client libraries: they share a topic, commit, and continue.

confluent-kafka, kafka-python and aiokafka, and Kafka's own console consumer and group command. All tests pass
against Apache Kafka, too (`--broker`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster import Cluster, numbered, unique
from tests.clients.polling import SECONDS_MAX, eventually
from tests.clients.share_probe import TIMEOUT_MS, ShareProbe
from tests.clients.tools import CONSOLE_CONSUMER, DUMP_LOG, run_tool
from tests.clients.untyped_clients import aiokafka, kafka_python

CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
RECORDS = 60
JOIN_MS = TIMEOUT_MS
"""A poll of kafka-python 3.0 that ends just when its SyncGroup is answered loses the assignment for good."""
SETTINGS: dict[str, Any] = {"session.timeout.ms": 45_000, "heartbeat.interval.ms": 200, "log_level": 0}


class Member:
    """A confluent consumer in a group, with its assignment and its records."""

    def __init__(self, bootstrap: str, group: str, topic: str, **settings: Any) -> None:
        self.values: list[str] = []
        self.partitions: set[int] = set()
        config: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
        }
        config = {**config, **SETTINGS, "enable.auto.commit": False, **settings}
        self.consumer = Consumer({name: value for name, value in config.items() if value is not None})
        self._is_incremental = settings.get("partition.assignment.strategy") == "cooperative-sticky"
        self.consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked)

    def poll(self) -> None:
        message = self.consumer.poll(0.02)
        if message is not None and message.error() is None:
            value = message.value()
            assert isinstance(value, bytes)
            self.values.append(value.decode())

    def _assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        if not self._is_incremental:
            self.partitions.clear()
        self.partitions.update(one.partition for one in partitions)

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.partitions.difference_update(one.partition for one in partitions)


@contextmanager
def members(*made: Member) -> Generator[Callable[[], None]]:
    """Closes them at the end; polls all of them once when called."""

    def poll() -> None:
        for one in made:
            one.poll()

    try:
        yield poll
    finally:
        for one in made:
            one.consumer.close()


def static(name: str) -> dict[str, Any]:
    """The setting of a static member."""
    return {"group.instance.id": name}


def poll_until(poll: Callable[[], None], is_so: Callable[[], bool], what: str) -> None:
    def attempt() -> bool:
        poll()
        return is_so()

    eventually(attempt, awaited=what)


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_members_share_the_partitions_and_take_over_from_each_other(
    cluster: Cluster, bootstrap: str, strategy: str
) -> None:
    topic, group = cluster.topic(partition_count=4), unique("group")
    settings = {"partition.assignment.strategy": strategy}
    first = Member(bootstrap, group, topic, **settings)
    with members(first) as poll:
        poll_until(poll, lambda: first.partitions == {0, 1, 2, 3}, "the first member has all")
        second = Member(bootstrap, group, topic, **settings)
        with members(first, second) as poll_both:
            poll_until(poll_both, lambda: len(first.partitions) == len(second.partitions) == 2, "they share")
            assert first.partitions | second.partitions == {0, 1, 2, 3}
            second.consumer.close()
            poll_until(poll, lambda: first.partitions == {0, 1, 2, 3}, "the first takes over")


def test_a_group_goes_on_where_it_has_committed(cluster: Cluster, bootstrap: str) -> None:
    topic, group = cluster.topic(), unique("group")
    cluster.produce(topic, numbered(RECORDS))
    first = Member(bootstrap, group, topic)
    with members(first) as poll:
        poll_until(poll, lambda: len(first.values) >= RECORDS // 2, "half is read")
        first.consumer.commit(offsets=[TopicPartition(topic, 0, RECORDS // 2)], asynchronous=False)
    second = Member(bootstrap, group, topic)
    with members(second) as poll:
        poll_until(poll, lambda: len(second.values) == RECORDS // 2, "the other half is read")
    assert second.values == numbered(RECORDS)[RECORDS // 2 :]


def test_a_static_member_that_comes_back_has_its_partitions_at_once(cluster: Cluster, bootstrap: str) -> None:
    topic, group = cluster.topic(partition_count=2), unique("group")
    stays = Member(bootstrap, group, topic, **static("stays"))
    goes = Member(bootstrap, group, topic, **static("goes"))
    with members(stays) as poll_one:
        with members(goes) as poll:
            poll_until(
                lambda: (poll(), poll_one())[0],
                lambda: len(stays.partitions) == len(goes.partitions) == 1,
                "they share",
            )
            theirs = set(goes.partitions)
        back = Member(bootstrap, group, topic, **static("goes"))
        with members(back) as poll:
            poll_until(poll, lambda: back.partitions == theirs, "it has its partition")
            poll_one()
            assert len(stays.partitions) == 1


def test_kafka_python_reads_in_a_group(cluster: Cluster, bootstrap: str) -> None:
    topic, group = cluster.topic(), unique("group")
    cluster.produce(topic, numbered(RECORDS))

    def read(count: int) -> list[str]:
        consumer = kafka_python.KafkaConsumer(
            topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest"
        )
        values: list[str] = []
        while len(values) < count:
            for records in consumer.poll(timeout_ms=JOIN_MS, max_records=count - len(values)).values():
                values += [record.value.decode() for record in records]
        consumer.commit()
        consumer.close()
        return values

    assert read(20) + read(RECORDS - 20) == numbered(RECORDS)


def test_aiokafka_reads_in_a_group(cluster: Cluster, bootstrap: str) -> None:
    topic, group = cluster.topic(), unique("group")
    cluster.produce(topic, numbered(RECORDS))

    async def read(count: int) -> list[str]:
        consumer = aiokafka.AIOKafkaConsumer(
            topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest"
        )
        await consumer.start()
        try:
            values = [(await consumer.getone()).value.decode() for _ in range(count)]
            await consumer.commit()
        finally:
            await consumer.stop()
        return values

    assert asyncio.run(read(20)) + asyncio.run(read(RECORDS - 20)) == numbered(RECORDS)


def test_the_console_consumer_reads_in_a_group_and_the_group_command_prints_its_offsets(
    cluster: Cluster, probe: ShareProbe
) -> None:
    topic, group = cluster.topic(), unique("group")
    cluster.produce(topic, numbered(10))
    options = ("--topic", topic, "--group", group, "--from-beginning", "--max-messages", "4")
    printed = probe.tool(CONSOLE_CONSUMER, *options, "--timeout-ms", str(TIMEOUT_MS)).output.splitlines()
    assert printed == numbered(10)[:4]
    (row,) = rows(probe, "--describe", "--group", group)
    assert row[:6] == [group, topic, "0", "4", "10", "6"]
    (state,) = rows(probe, "--describe", "--state", "--group", group)
    assert state[-2:] == ["Empty", "0"]
    reset = ("--reset-offsets", "--to-earliest", "--execute", "--group", group, "--topic", topic)
    assert rows(probe, *reset)[0][:4] == [group, topic, "0", "0"]
    assert [group] in rows(probe, "--list")
    probe.tool(CONSUMER_GROUPS, "--delete-offsets", "--group", group, "--topic", topic)
    probe.tool(CONSUMER_GROUPS, "--delete", "--group", group)
    assert [group] not in rows(probe, "--list")


def rows(probe: ShareProbe, *arguments: str) -> list[list[str]]:
    """The rows that the group command prints, without headings."""
    lines = probe.tool(CONSUMER_GROUPS, *arguments).output.splitlines()
    return [line.split() for line in lines if line.strip() and not line.startswith("GROUP ")]


@pytest.mark.barnabas
def test_a_killed_broker_has_lost_no_commit(own_broker: BrokerProcess) -> None:
    cluster = Cluster(own_broker.address)
    topic, group = cluster.topic(partition_count=2), unique("group")
    cluster.produce(topic, numbered(RECORDS))
    member = Member(own_broker.address, group, topic)
    with members(member) as poll:
        poll_until(poll, lambda: len(member.partitions) == 2, "it has joined")
        for number in range(1, 8):
            offsets = [TopicPartition(topic, one, number) for one in (0, 1)]
            member.consumer.commit(offsets=offsets, asynchronous=False)
        own_broker.kill()
        own_broker.start()
        found = member.consumer.committed([TopicPartition(topic, one) for one in (0, 1)], timeout=SECONDS_MAX)
        assert [one.offset for one in found] == [7, 7]
        member.consumer.commit(offsets=[TopicPartition(topic, 0, 9)], asynchronous=False)


@pytest.mark.barnabas
def test_kafkas_dump_tool_reads_groups_and_offsets(own_broker: BrokerProcess) -> None:
    cluster = Cluster(own_broker.address)
    topic, group = cluster.topic(), unique("group")
    member = Member(own_broker.address, group, topic)
    with members(member) as poll:
        poll_until(poll, lambda: member.partitions == {0}, "it has joined")
        member.consumer.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
    assert own_broker.stop() == 0
    dumped = [
        run_tool(DUMP_LOG, "--offsets-decoder", "--files", segment)
        for segment in own_broker.data_directory.glob(f"__consumer_offsets-*/{0:020d}.log")
        if segment.stat().st_size
    ]
    payloads = [
        json.loads(line.partition("payload: ")[2])
        for line in "\n".join(dumped).splitlines()
        if "payload: " in line and line.partition("payload: ")[2].startswith("{")
    ]
    offsets = [one["data"]["offset"] for one in payloads if "offset" in one.get("data", {})]
    generations = [one["data"]["generation"] for one in payloads if "generation" in one.get("data", {})]
    assert offsets == [5], dumped
    assert generations == [0, 1, 2], dumped
