"""A query's batches against a real broker: everything once, after failures at any time."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from barnabas.pipeline.share_source.decisions import Decision, DecisionFiles
from tests.clients.cluster import Cluster, numbered
from tests.clients.polling import eventually
from tests.pipeline.share_source.driving import SinkError, query


def test_records_arrive_once_with_all_their_columns(cluster: Cluster) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce(topic, ["hello"])
    reading = query(cluster, group, topic)
    with reading.running():
        reading.drain(1)
    (row,) = reading.rows
    assert {name: row[name] for name in ("key", "value", "topic", "partition", "offset", "headers")} == {
        "key": None,
        "value": b"hello",
        "topic": topic,
        "partition": 0,
        "offset": 0,
        "headers": [],
    }
    assert row["timestampType"] == 0
    assert row["deliveryCount"] == 1


def test_the_records_of_a_batch_are_bounded_and_none_is_left_out(cluster: Cluster) -> None:
    topic, group = cluster.topic(2), cluster.group()
    cluster.produce(topic, numbered(500))
    reading = query(cluster, group, topic, maxRecordsPerBatch=120, minPartitions=3)
    with reading.running():
        reading.drain(500)
        assert reading.metrics["acquired"] == reading.metrics["emitted"] == 500
    assert reading.values == sorted(numbered(500))
    assert max(map(len, reading.sink.values())) == 120


def test_a_trigger_without_new_records_returns_the_start(cluster: Cluster) -> None:
    topic, group = cluster.topic(), cluster.group()
    reading = query(cluster, group, topic, maxWaitMs=10)
    with reading.running():
        assert reading.trigger() is None
        cluster.produce(topic, ["one"])
        reading.drain(1)
        assert reading.trigger() is None
    assert len(reading.log) == 1


@pytest.mark.parametrize("is_written", [False, True], ids=["before", "after"])
def test_a_batch_that_failed_before_or_after_its_sink_is_run_again_as_it_was(
    cluster: Cluster, is_written: bool
) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce(topic, numbered(300))
    reading = query(cluster, group, topic, maxRecordsPerBatch=100)

    def fail(_: int) -> None:
        raise SinkError

    reading.before_commit = fail
    with pytest.raises(SinkError), reading.running():
        eventually(lambda: reading.trigger() is not None, awaited="a batch fails")
    first = reading.sink[0]
    if not is_written:
        del reading.sink[0]
    reading.before_commit = None
    with reading.running():
        reading.drain(300)
        assert reading.metrics["omitted"] == reading.metrics["twice"] == 0
        eventually(
            lambda: reading.trigger() is None and reading.metrics["lag"] == 0, awaited="the group is done"
        )
    assert reading.sink[0] == first
    assert reading.values == sorted(numbered(300))
    assert reading.replays == ([first] if is_written else [])


def test_acquired_records_that_were_not_logged_come_again(cluster: Cluster) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce(topic, numbered(50))
    reading = query(cluster, group, topic)
    with reading.running():
        eventually(reading.acquire, awaited="something is acquired")
        reading.log.clear()
    with reading.running():
        reading.drain(50)
    assert reading.values == sorted(numbered(50))
    assert {row["deliveryCount"] for row in reading.rows} == {2}


def test_a_restarted_query_is_the_same_member(cluster: Cluster) -> None:
    topic, group = cluster.topic(), cluster.group()
    reading = query(cluster, group, topic)
    for count in (1, 2):
        cluster.produce(topic, [f"record-{count}"])
        with reading.running():
            reading.drain(count)
    assert len({json.loads(offset)["member"] for offset in reading.log}) == 1
    assert reading.values == ["record-1", "record-2"]


def test_members_of_a_group_share_its_records(cluster: Cluster) -> None:
    topic, group = cluster.topic(3), cluster.group()
    queries = [query(cluster, group, topic, maxRecordsPerBatch=40, maxWaitMs=20) for _ in range(3)]
    with queries[0].running(), queries[1].running(), queries[2].running():
        cluster.produce(topic, numbered(600))

        def all_are_read() -> bool:
            for one in queries:
                one.trigger()
            return sum(len(one.rows) for one in queries) >= 600

        eventually(all_are_read, awaited="all are read")
    values = Counter(value for one in queries for value in one.values)
    assert values == Counter(numbered(600))


def test_a_lock_that_ends_while_the_batch_runs_doubles_nothing(cluster: Cluster) -> None:
    topic, group = cluster.topic(), cluster.group(record_lock_duration_ms=1_000)
    cluster.produce(topic, numbered(100))
    reading = query(cluster, group, topic, renewLocks=False)
    other = query(cluster, group, topic, maxWaitMs=50)
    with reading.running():
        eventually(reading.acquire, awaited="something is acquired")
        with other.running():
            # Another member gets the records, so the locks have ended; it gives the records back.
            eventually(other.acquire, awaited="the locks end")
        rows = reading.read(0)
        reading.sink[0], reading.done_count = rows, 1
        eventually(
            lambda: reading.trigger() is None and reading.metrics["deduplicated"] == 100,
            awaited="done records come again",
        )
        assert reading.metrics["expired"] == 100
        cluster.produce(topic, ["later"])
        reading.drain(101)
    assert reading.values == sorted([*numbered(100), "later"])


def test_a_lock_is_renewed_as_long_as_the_batch_runs(cluster: Cluster) -> None:
    topic, group = cluster.topic(), cluster.group(record_lock_duration_ms=1_000)
    cluster.produce(topic, numbered(100))
    reading = query(cluster, group, topic)
    other = query(cluster, group, topic, maxWaitMs=50)
    with reading.running(), other.running():
        eventually(lambda: reading.acquire() or other.acquire(), awaited="something is acquired")
        holder, watcher = (reading, other) if reading.log else (other, reading)
        # Nine rounds are three times the duration of a lock.
        eventually(
            lambda: not watcher.acquire() and holder.metrics["renewed"] >= 900, awaited="locks are renewed"
        )
        holder.sink[0], holder.done_count = holder.read(0), 1
        assert holder.trigger() is None
        assert holder.metrics["expired"] == holder.metrics["deduplicated"] == 0
        assert not watcher.acquire()


def test_released_records_come_again_and_rejected_ones_do_not(cluster: Cluster, tmp_path: Path) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce(topic, numbered(10))
    directory = str(tmp_path / "acks")
    reading = query(cluster, group, topic, ackDir=directory)

    def decide(batch_id: int) -> None:
        if batch_id == 0:
            decided: dict[int, Decision] = {
                2: "release",
                3: "release",
                4: "reject",
                5: "reject",
                7: "release",
            }
            DecisionFiles(directory).write(0, [(topic, 0, offset, one) for offset, one in decided.items()])

    reading.before_commit = decide
    with reading.running():
        reading.drain(13)
        assert reading.metrics["released"] == 3
        assert reading.metrics["rejected"] == 2
    again = [(row["offset"], row["deliveryCount"]) for row in reading.rows[10:]]
    assert again == [(2, 2), (3, 2), (7, 2)]
    with reading.running():
        assert reading.trigger() is None
        eventually(
            lambda: reading.trigger() is None and reading.metrics["lag"] == 0, awaited="the group is done"
        )


def test_decisions_outlive_the_driver(cluster: Cluster, tmp_path: Path) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce(topic, numbered(4))
    directory = str(tmp_path / "acks")
    reading = query(cluster, group, topic, ackDir=directory)

    def decide(batch_id: int) -> None:
        if batch_id == 0:
            DecisionFiles(directory).write(0, [(topic, 0, 1, "release"), (topic, 0, 2, "reject")])

    reading.before_commit = decide
    with reading.running():
        eventually(lambda: reading.trigger() is not None, awaited="a batch is done")
    with reading.running():
        reading.drain(5)
        eventually(
            lambda: reading.trigger() is None and reading.metrics["lag"] == 0, awaited="the group is done"
        )
    assert [row["offset"] for row in reading.rows[4:]] == [1]


def test_a_group_that_was_deleted_is_read_again(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.pipeline.share_source.batches.POSITIONS_MS", 0)
    topic, group = cluster.topic(), cluster.group()
    cluster.produce(topic, numbered(30))
    reading = query(cluster, group, topic, maxRecordsPerBatch=10)
    with reading.running():
        reading.drain(30)
    for deleted in cluster.admin.delete_consumer_groups([group]).values():
        deleted.result()
    with reading.running():
        reading.drain(60)
    assert reading.values == sorted([*numbered(30), *numbered(30)])


def test_a_group_that_renews_nothing_doubles_nothing(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    topic = cluster.topic()
    group = cluster.group(record_lock_duration_ms=1_000, renew_acknowledge_enable="false")
    cluster.produce(topic, numbered(100))
    reading = query(cluster, group, topic)
    other = query(cluster, group, topic, maxWaitMs=50)
    with reading.running():
        eventually(reading.acquire, awaited="something is acquired")
        with other.running():
            eventually(other.acquire, awaited="the locks end")
        reading.sink[0], reading.done_count = reading.read(0), 1
        eventually(
            lambda: reading.trigger() is None and reading.metrics["deduplicated"] == 100,
            awaited="done records come again",
        )
        assert reading.metrics["renewed"] == 0
    assert reading.values == sorted(numbered(100))
    assert caplog.text.count("Locks are not renewed: the group has it switched off") <= 2


def test_without_renewals_no_more_is_acquired_than_a_batch_may_have(cluster: Cluster) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce(topic, numbered(100))
    reading = query(cluster, group, topic, maxRecordsPerBatch=30, renewLocks=False)
    with reading.running():
        eventually(reading.acquire, awaited="a batch is acquired")
        assert reading.metrics["acquired"] == 30
        reading.sink[0], reading.done_count = reading.read(0), 1
        reading.drain(100)
    assert reading.values == sorted(numbered(100))
