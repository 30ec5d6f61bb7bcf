"""Topics and groups from each broker into the other: record by record, group by group."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.brokers.process import LocalBroker
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession

from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.export.directory import ExportDirectory
from barnabas.pipeline.export.exporting import export_slice, export_topics, missing_slices
from barnabas.pipeline.export.group_restoring import GroupRestorer
from barnabas.pipeline.export.manifest import (
    AVAILABLE,
    CommittedOffset,
    CommittedRange,
    ConsumerGroup,
    InFlight,
    ShareGroup,
    SharePosition,
)
from barnabas.pipeline.export.offset_marks import Place
from barnabas.pipeline.export.planning import plan_export
from barnabas.pipeline.export.record_file import find_slice
from barnabas.pipeline.export.restore_partition import RestoredPartition
from barnabas.pipeline.export.restore_state import RestoredTopic
from barnabas.pipeline.export.restoring import restore_topics
from tests.clients.cluster import Cluster, unique
from tests.clients.polling import SECONDS_MAX
from tests.pipeline.brokers import KINDS, SharedBrokers, new_broker
from tests.pipeline.export.both_ways import (
    abort_some,
    accept,
    commit,
    commit_individually,
    export_request,
    left_for,
    produce_all_kinds,
    read_all,
    release,
    restore_request,
    servers_of,
    some_of_each,
    topic_id_of,
    work,
)

WAYS = [("barnabas", "kafka"), ("kafka", "barnabas")]


@pytest.fixture(params=WAYS, ids="-to-".join)
def way(request: pytest.FixtureRequest, brokers: SharedBrokers) -> tuple[LocalBroker, LocalBroker]:
    source, target = request.param
    return brokers[source], brokers[target]


def test_records_settings_and_groups_arrive_unchanged(
    way: tuple[LocalBroker, LocalBroker], spark: SparkSession, tmp_path: Path
) -> None:
    source, target = way
    cluster = Cluster(source.address)
    topic = cluster.topic(2, retention_ms="-1", max_message_bytes="200000")
    group = cluster.group(delivery_count_limit=7, record_lock_duration_ms=20_000)
    done = cluster.group()
    for partition, count in ((0, 200), (1, 90)):
        produce_all_kinds(source, topic, partition, count)
    work(source, group, topic, 60, some_of_each)
    work(source, group, topic, 12, release)
    work(source, done, topic, 290, accept)

    manifest = export_topics(spark, export_request(source, topic), str(tmp_path))
    report = restore_topics(spark, restore_request(target), str(tmp_path))

    assert (manifest.record_count, report.record_count, report.written_count) == (290, 290, 290)
    assert (manifest.left_out, report.notes) == ((), ())
    assert read_all(target, topic) == read_all(source, topic)
    restored = asyncio.run(plan_export(export_request(target, topic)))
    assert restored.topics[0].settings == manifest.topics[0].settings
    assert {one.group_id: one.settings for one in restored.share_groups} == {
        one.group_id: one.settings for one in manifest.share_groups
    }
    left = left_for(source, group, topic)
    assert len(left) > 200
    assert left_for(target, group, topic) == left
    assert left_for(target, done, topic) == []


def test_a_group_with_only_its_start_offset_gets_records_accepted_out_of_order_again(
    brokers: SharedBrokers, spark: SparkSession, tmp_path: Path
) -> None:
    source, target = brokers["barnabas"], brokers["kafka"]
    cluster = Cluster(source.address)
    topic, group = cluster.topic(), cluster.group()
    produce_all_kinds(source, topic, 0, 50)
    work(source, group, topic, 5, accept)
    work(source, group, topic, 9, some_of_each)

    manifest = export_topics(spark, export_request(source, topic, data_directories=()), str(tmp_path))
    report = restore_topics(spark, restore_request(target), str(tmp_path))

    assert f"Only the start offsets of group {group} are known" in manifest.left_out[0]
    assert report.notes == (
        f"The share group {group} gets the records of {topic}-0 again that it accepted above its start.",
    )
    again = {one.value for one in left_for(target, group, topic)}
    missed = {one.value for one in left_for(source, group, topic)} - again
    assert not missed
    assert len(left_for(target, group, topic)) <= 45


@pytest.mark.parametrize("kind", KINDS)
def test_a_target_that_gives_up_earlier_delivers_every_record_once_more(
    brokers: SharedBrokers, kind: str
) -> None:
    target = brokers[kind]
    cluster = Cluster(target.address)
    topic, group_id = cluster.topic(), cluster.group()
    produce_all_kinds(target, topic, 0, 6)
    settings = {"share.delivery.count.limit": "2", "share.auto.offset.reset": "earliest"}
    states = (InFlight(1, 1, AVAILABLE, 1), InFlight(2, 4, AVAILABLE, 3))
    group = ShareGroup(group_id, settings, (SharePosition(topic, 0, 1, states),))
    places = {offset: Place(offset, offset) for offset in range(7)}
    restored = RestoredTopic(topic, is_ours=True, topic_id=topic_id_of(target, topic), begin_offsets=(0,))

    async def restore() -> list[str]:
        cluster = servers_of(target).cluster()
        restorer = GroupRestorer(cluster, {topic: restored}, [RestoredPartition(topic, 0, 6, places)])
        try:
            return await restorer.restore_share_group(group)
        finally:
            restorer.close()
            cluster.close()

    (note,) = asyncio.run(restore())
    assert note == (
        f"The share group {group_id} gets 3 records of {topic}-0 once more, with lower delivery counts than "
        "before: the target allows 2 (share.delivery.count.limit)."
    )
    counts = {one.value: one.delivery_count for one in left_for(target, group_id, topic)}
    assert counts == {b"value 1": 2, b"value 2": 2, b"value 3": 2, b"value 4": 2, None: 1}


def test_the_offsets_of_ordinary_groups_come_along(
    way: tuple[LocalBroker, LocalBroker], spark: SparkSession, tmp_path: Path
) -> None:
    source, target = way
    topic, group = Cluster(source.address).topic(), unique("readers")
    produce_all_kinds(source, topic, 0, 50)
    consumer = Consumer({"bootstrap.servers": source.address, "group.id": group})
    commit(consumer, TopicPartition(topic, 0, 31, metadata="as far as this"))
    consumer.close()

    export_topics(spark, export_request(source, topic), str(tmp_path))
    restored = restore_topics(spark, restore_request(target), str(tmp_path))

    assert restored.notes == ()
    consumer = Consumer({"bootstrap.servers": target.address, "group.id": group})
    (committed,) = consumer.committed([TopicPartition(topic, 0)], timeout=SECONDS_MAX)
    consumer.close()
    assert (committed.offset, committed.metadata) == (31, "as far as this")


def test_ranges_that_were_committed_individually_come_along(
    brokers: SharedBrokers, spark: SparkSession, tmp_path: Path
) -> None:
    source, target = brokers["barnabas"], new_broker("barnabas", tmp_path / "target")
    exported, wanted = exported_ranges(source, spark, tmp_path / "export")
    assert exported.offsets == (wanted,)
    target.start()
    try:
        report = restore_topics(spark, restore_request(target), str(tmp_path / "export"))
        request = export_request(target, wanted.topic, groups=(exported.group_id,))
        restored = asyncio.run(plan_export(request))
    finally:
        target.kill()
    assert report.notes == ()
    assert restored.consumer_groups == (exported,)


def test_a_target_that_keeps_no_ranges_gets_the_committed_offset(
    brokers: SharedBrokers, spark: SparkSession, tmp_path: Path
) -> None:
    source, target = brokers["barnabas"], brokers["kafka"]
    exported, wanted = exported_ranges(source, spark, tmp_path)
    (note,) = restore_topics(spark, restore_request(target), str(tmp_path)).notes
    request = export_request(target, wanted.topic, groups=(exported.group_id,))
    (restored,) = asyncio.run(plan_export(request)).consumer_groups
    assert restored.offsets == (replace(wanted, ranges=()),)
    assert note.startswith(
        f"The consumer group {exported.group_id} gets records again that it has committed individually, in 2 "
        "ranges: unsupported_version: "
    )


def exported_ranges(
    source: LocalBroker, spark: SparkSession, directory: Path
) -> tuple[ConsumerGroup, CommittedOffset]:
    """A group as exported, and its only position: it has committed 0 to 9, 20 to 24 and 30."""
    topic, group_id = Cluster(source.address).topic(), unique("sharers")
    produce_all_kinds(source, topic, 0, 50)
    asyncio.run(commit_individually(source, group_id, topic, [(0, 9), (20, 24), (30, 30)]))
    request = export_request(source, topic, groups=(group_id,))
    (group,) = export_topics(spark, request, str(directory)).consumer_groups
    ranges = CommittedRange(20, 24), CommittedRange(30, 30)
    return group, CommittedOffset(topic, 0, 10, "", ranges)


def test_a_log_gives_the_same_files_as_its_broker(
    way: tuple[LocalBroker, LocalBroker], tmp_path: Path
) -> None:
    source, _ = way
    topic = Cluster(source.address).topic()
    produce_all_kinds(source, topic, 0, 150)
    abort_some(source, topic)
    produce_all_kinds(source, topic, 0, 10)
    data = (str(source.directory / "data"),)
    digests: list[list[str]] = []
    for from_logs in (False, True):
        directory = ExportDirectory(str(tmp_path / str(from_logs)))
        request = export_request(source, topic, data_directories=data, from_logs=from_logs)
        plan = asyncio.run(plan_export(request))
        for task in missing_slices(request, directory, plan):
            export_slice(task)
        pieces = [find_slice(directory, piece) for piece in plan.topics[0].partitions[0].slices]
        assert sum(one.record_count for one in pieces if one is not None) == 160
        digests.append([one.sha256 for one in pieces if one is not None])
    assert digests[0] == digests[1]


@pytest.mark.kafka
def test_the_data_directory_of_another_cluster_is_refused(brokers: SharedBrokers) -> None:
    topic = Cluster(brokers["barnabas"].address).topic()
    other = str(brokers["kafka"].directory / "data")
    request = export_request(brokers["barnabas"], topic, data_directories=(other,))
    with pytest.raises(OptionError, match=r"^--data-dir: .* is not a data directory of the cluster"):
        asyncio.run(plan_export(request))


def test_an_empty_topic_is_restored_as_one(
    way: tuple[LocalBroker, LocalBroker], spark: SparkSession, tmp_path: Path
) -> None:
    source, target = way
    topic = Cluster(source.address).topic(3)
    export_topics(spark, export_request(source, topic), str(tmp_path))
    assert restore_topics(spark, restore_request(target), str(tmp_path)).record_count == 0
    assert read_all(target, topic) == {0: [], 1: [], 2: []}
