"""The failure matrix: after the death of any process at any time, every record is in the sink once."""

from __future__ import annotations

import os
import re
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from benchmarks.brokers.process import LocalBroker
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf

from barnabas.pipeline.share_source import stop_in_order
from tests.clients.cluster import Cluster, numbered
from tests.clients.polling import eventually
from tests.pipeline.brokers import KINDS
from tests.pipeline.share_source.matrix import (
    BATCH_RECORDS,
    RECORDS,
    InjectedError,
    Sink,
    once,
    outlast_a_lock,
    run_driver,
    run_to_the_end,
    start,
)

pytestmark = pytest.mark.matrix


@pytest.fixture
def sink(tmp_path: Path) -> Sink:
    directory = tmp_path / "sink"
    directory.mkdir()
    return Sink(directory)


def produced(cluster: Cluster, *, partitions: int = 2, **group: str) -> dict[str, Any]:
    """The options of a query on a fresh topic of `RECORDS` records."""
    topic = cluster.topic(partitions)
    cluster.produce(topic, numbered(RECORDS))
    return {
        "servers": cluster.bootstrap,
        "group": cluster.group(**group),
        "topics": topic,
        "maxRecordsPerBatch": BATCH_RECORDS,
    }


def raise_injected() -> None:
    raise InjectedError


def test_a_sink_that_fails_before_and_after_it_has_written(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, sink: Sink
) -> None:
    sink.before, sink.after = once(0, raise_injected), once(1, raise_injected)
    failures = run_to_the_end(spark, produced(cluster), tmp_path / "checkpoint", sink, numbered(RECORDS))
    assert failures >= 2
    assert 1 in sink.replayed


def test_a_worker_that_is_killed_neither_loses_nor_repeats_a_record(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, sink: Sink
) -> None:
    marker = tmp_path / "killed"

    def kill_worker(value: bytes) -> bytes:
        if not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return value

    def through_worker(batch: DataFrame) -> DataFrame:
        return batch.withColumn("value", cast("Any", udf)(kill_worker, "binary", useArrow=False)("value"))

    sink.change = through_worker
    failures = run_to_the_end(spark, produced(cluster), tmp_path / "checkpoint", sink, numbered(RECORDS))
    assert marker.exists()
    assert failures >= 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_broker_that_is_killed_while_a_batch_runs_neither_loses_nor_repeats_a_record(
    spark: SparkSession,
    start_broker: Callable[[str], LocalBroker],
    kind: str,
    tmp_path: Path,
    sink: Sink,
) -> None:
    broker = start_broker(kind)

    def restart() -> None:
        broker.kill()
        broker.start()

    sink.after = once(1, restart)
    options = produced(Cluster(broker.address))
    run_to_the_end(spark, options, tmp_path / "checkpoint", sink, numbered(RECORDS))


@pytest.mark.parametrize("renew", ["true", "false"], ids=["renewed", "not-renewed"])
def test_a_batch_that_takes_longer_than_a_lock_neither_loses_nor_repeats_a_record(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, sink: Sink, renew: str
) -> None:
    options = produced(cluster, record_lock_duration_ms="1000") | {"renewLocks": renew}
    sink.before = once(1, lambda: outlast_a_lock(cluster, duration_ms=1000))  # the work of the batch
    run_to_the_end(spark, options, tmp_path / "checkpoint", sink, numbered(RECORDS))


def test_three_queries_in_one_group_write_each_record_once(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    options: dict[str, Any] = produced(cluster, partitions=3) | {"maxRecordsPerBatch": 20}
    sinks = [Sink(tmp_path / f"sink-{number}") for number in range(3)]
    for one in sinks:
        one.directory.mkdir()
    queries = [
        start(spark, options, tmp_path / f"checkpoint-{number}", one, available_now=False)
        for number, one in enumerate(sinks)
    ]
    try:
        cluster.produce(options["topics"], numbered(RECORDS, "later"))
        expected = Counter([*numbered(RECORDS), *numbered(RECORDS, "later")])

        def written() -> Counter[str]:
            return sum((one.values for one in sinks), Counter[str]())

        eventually(lambda: written().total() >= expected.total(), awaited="all is read")
        assert written() == expected
    finally:
        for query in queries:
            query.stop()


def test_a_driver_that_is_killed_before_and_after_its_sink_has_written(
    cluster: Cluster, tmp_path: Path, sink: Sink
) -> None:
    config = {"directory": str(tmp_path), "options": produced(cluster)}
    assert run_driver(config | {"kill_before": 0}) == -signal.SIGKILL
    assert sink.batches == []
    assert run_driver(config | {"kill_after": 1}) == -signal.SIGKILL
    assert sink.batches == [0, 1]
    assert run_driver(config) == 0
    assert sink.values == Counter(numbered(RECORDS))


@pytest.mark.parametrize("event", ["kill_before", "kill_after"])
def test_a_driver_that_is_killed_while_another_query_gets_its_records(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, sink: Sink, event: str
) -> None:
    options = produced(cluster, record_lock_duration_ms="10000", session_timeout_ms="10000")
    killed = Sink(tmp_path / "killed" / "sink")
    killed.directory.mkdir(parents=True)
    config = {
        "directory": str(tmp_path / "killed"),
        "options": options | {"stateDir": str(tmp_path / "killed" / "state")},
    }
    assert run_driver(config | {event: 0}) == -signal.SIGKILL
    written_count = killed.values.total()
    assert (written_count > 0) is (event == "kill_after")
    state_dir = str(tmp_path / "state")
    query = start(
        spark, options | {"stateDir": state_dir}, tmp_path / "checkpoint", sink, available_now=False
    )
    try:
        eventually(lambda: sink.values.total() >= RECORDS, awaited="the other query has all")
        assert stop_in_order(query, state_dir=state_dir)
    finally:
        query.stop()
    assert run_driver(config) == 0
    twice = killed.values + sink.values - Counter(numbered(RECORDS))
    assert not Counter(numbered(RECORDS)) - killed.values - sink.values
    assert twice.total() == written_count
    reported = r"without (\d+) offsets that other members of the group have got"
    omitted = re.search(reported, (tmp_path / "killed" / "output").read_text())
    assert omitted is not None
    assert int(omitted[1]) == written_count or event == "kill_before"
