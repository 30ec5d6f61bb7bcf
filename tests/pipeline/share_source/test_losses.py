"""Records of a logged batch that cannot be read any more: an error, or rows in the side table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import TopicCollection, TopicPartition

from barnabas.pipeline.errors import PipelineError
from tests.clients.cluster import Cluster, confluent_admin, numbered
from tests.clients.polling import eventually
from tests.pipeline.share_source.driving import Query, query


def acquired(cluster: Cluster, topic: str, **options: object) -> Query:
    """A query on 20 records, produced in batches of 5, that has acquired them all and read none."""
    group = cluster.group()
    for first in range(0, 20, 5):
        cluster.produce(topic, numbered(20)[first : first + 5])
    reading = query(cluster, group, topic, **options)
    with reading.running():
        eventually(reading.acquire, awaited="something is acquired")
    assert sum(last - first + 1 for first, last, _ in batch_ranges(reading)) == 20
    return reading


def batch_ranges(reading: Query) -> list[tuple[int, int, int]]:
    (partitions,) = reading.end["batch"].values()
    return [tuple(one) for one in partitions["0"]]


def delete_before(cluster: Cluster, topic: str, offset: int) -> None:
    """As retention does: the log begins at `offset`."""
    deleted = cluster.admin.delete_records([TopicPartition(topic, 0, offset)])
    for one in deleted.values():
        one.result()


def lost(directory: Path) -> list[dict[str, object]]:
    return [json.loads(path.read_text()) for path in sorted(directory.glob("*.json"))]


def test_records_that_retention_has_taken_from_a_logged_batch_are_an_error(cluster: Cluster) -> None:
    topic = cluster.topic()
    reading = acquired(cluster, topic)
    delete_before(cluster, topic, 8)
    message = rf"{topic}-0: offsets 0 to 7 of this batch are not in the log any more: .*failOnDataLoss=false"
    with pytest.raises(PipelineError, match=message), reading.running():
        pass


def test_records_that_retention_has_taken_are_noted_if_that_is_wanted(
    cluster: Cluster, tmp_path: Path
) -> None:
    topic = cluster.topic()
    reading = acquired(cluster, topic, failOnDataLoss=False, sideTable=tmp_path / "lost")
    delete_before(cluster, topic, 8)
    with reading.running():
        reading.drain(12)
    assert reading.values == sorted(numbered(20)[8:])
    (row,) = lost(tmp_path / "lost")
    assert (row["topic"], row["partition"], row["firstOffset"], row["lastOffset"]) == (topic, 0, 0, 7)


def test_a_topic_that_was_created_again_is_another_topic(cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.topic()
    reading = acquired(cluster, topic, failOnDataLoss=False, sideTable=tmp_path / "lost")
    for deleted in cluster.admin.delete_topics([topic]).values():
        deleted.result()
    eventually(lambda: recreate(cluster, topic), awaited="the topic is made anew")
    cluster.produce(topic, ["anew"])
    with reading.running():
        reading.drain(1)
    assert reading.values == ["anew"]
    (row,) = lost(tmp_path / "lost")
    assert (row["firstOffset"], row["lastOffset"]) == (0, 19)


def recreate(cluster: Cluster, topic: str) -> bool:
    """Make a topic of this name, once the former one is gone for good."""
    (created,) = cluster.admin.create_topics([confluent_admin.NewTopic(topic, num_partitions=1)]).values()
    if created.exception(20) is not None:
        return False
    return bool(cluster.admin.describe_topics(TopicCollection([topic])))
