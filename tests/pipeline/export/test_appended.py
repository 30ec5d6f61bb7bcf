"""A restore behind records that a topic has already: no group may skip those."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.brokers.process import LocalBroker
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.export.exporting import export_topics
from barnabas.pipeline.export.restoring import restore_topics
from tests.clients.cluster import Cluster, unique
from tests.clients.polling import SECONDS_MAX
from tests.pipeline.brokers import new_broker
from tests.pipeline.export.both_ways import (
    accept,
    commit,
    export_request,
    left_for,
    produce_all_kinds,
    read_all,
    restore_request,
    work,
)

EXPORTED = 45
DONE = 4
"""The exported records that the group has finished."""
BEFORE = 2
"""The records that the target has before the restore."""

Way = tuple[LocalBroker, LocalBroker]


@pytest.fixture(scope="module")
def way(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    """The source and the target. The target's share state takes up offsets, which have no records."""
    directory = tmp_path_factory.mktemp("appended")
    source, target = (new_broker("barnabas", directory / name) for name in ("source", "target"))
    try:
        source.start()
        target.start()
        yield source, target
    finally:
        source.kill()
        target.kill()


@pytest.fixture
def topic(way: Way) -> str:
    """A topic in both brokers: producers have been pointed at the target too early."""
    name = Cluster(way[0].address).topic()
    Cluster(way[1].address).topic(name=name)
    produce_all_kinds(way[0], name, 0, EXPORTED)
    produce_all_kinds(way[1], name, 0, BEFORE)
    return name


def commit_as(broker: LocalBroker, group: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": group})
    commit(consumer, TopicPartition(topic, 0, offset))
    consumer.close()


def committed(broker: LocalBroker, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": group})
    (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=SECONDS_MAX)
    consumer.close()
    return found.offset


def test_a_consumer_group_skips_no_records_that_the_target_had_before(
    way: Way, topic: str, spark: SparkSession, tmp_path: Path
) -> None:
    source, target = way
    group = unique("readers")
    commit_as(source, group, topic, DONE)
    export_topics(spark, export_request(source, topic, groups=(group,)), str(tmp_path))
    refused = f"The group {group} would skip records of {topic}-0 that the target has already, from offset 0"
    with pytest.raises(PipelineError, match=refused):
        restore_topics(spark, restore_request(target, append=True), str(tmp_path))
    assert len(read_all(target, topic)[0]) == BEFORE
    commit_as(target, group, topic, 1)
    with pytest.raises(PipelineError, match=f"would skip records of {topic}-0 .*, from offset 1 to 1"):
        restore_topics(spark, restore_request(target, append=True), str(tmp_path))

    commit_as(target, group, topic, BEFORE)
    restore_topics(spark, restore_request(target, append=True), str(tmp_path))

    assert len(read_all(target, topic)[0]) == BEFORE + EXPORTED
    assert committed(target, group, topic) == BEFORE + DONE


def test_a_share_group_skips_no_records_that_the_target_had_before(
    way: Way, topic: str, spark: SparkSession, tmp_path: Path
) -> None:
    source, target = way
    group = Cluster(source.address).group()
    Cluster(target.address).set_group(group, {"share.auto.offset.reset": "earliest"})
    work(source, group, topic, DONE, accept)
    export_topics(spark, export_request(source, topic, groups=(group,)), str(tmp_path))
    with pytest.raises(PipelineError, match=f"The group {group} would skip records of {topic}-0 that"):
        restore_topics(spark, restore_request(target, append=True), str(tmp_path))
    work(target, group, topic, 1, accept)
    with pytest.raises(PipelineError, match=f"would skip records of {topic}-0 .*, from offset 1 to"):
        restore_topics(spark, restore_request(target, append=True), str(tmp_path))

    work(target, group, topic, BEFORE - 1, accept)
    restore_topics(spark, restore_request(target, append=True), str(tmp_path))

    assert len(left_for(target, group, topic)) == EXPORTED - DONE


def test_a_restore_without_groups_is_appended(
    way: Way, topic: str, spark: SparkSession, tmp_path: Path
) -> None:
    source, target = way
    export_topics(spark, export_request(source, topic, groups=()), str(tmp_path))
    report = restore_topics(spark, restore_request(target, append=True), str(tmp_path))
    assert report.written_count == EXPORTED
