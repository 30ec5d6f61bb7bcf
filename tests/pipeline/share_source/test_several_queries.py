"""Several queries in one group against a real broker: one gets the records of another's failed batch."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from barnabas.pipeline.share_source.state_files import StateFiles
from tests.clients.cluster import Cluster, numbered
from tests.clients.polling import eventually
from tests.pipeline.share_source.driving import Query, query

RECORDS = 300


def state_dir(tmp_path: Path, number: int) -> str:
    return str(tmp_path / f"state-{number}")


def queries_of(cluster: Cluster, tmp_path: Path, count: int, **options: object) -> list[Query]:
    """Queries of one group on a topic of `RECORDS` records, each with a directory of its own."""
    topic, group = cluster.topic(2), cluster.group()
    cluster.produce(topic, numbered(RECORDS))
    return [
        query(cluster, group, topic, stateDir=state_dir(tmp_path, number), maxWaitMs=20, **options)
        for number in range(count)
    ]


def written(queries: list[Query]) -> Counter[str]:
    return Counter(value for one in queries for value in one.values)


def batch_record_count(one: Query) -> int:
    """The number of records in its last batch: fewer than all if a broker delivers them in small parts."""
    ranges = [
        span for topic in one.end["batch"].values() for partition in topic.values() for span in partition
    ]
    return sum(last - first + 1 for first, last, *_ in ranges)


def test_a_batch_that_was_cut_short_leaves_out_the_records_that_another_query_got(
    cluster: Cluster, tmp_path: Path
) -> None:
    first, second = queries = queries_of(cluster, tmp_path, 2)
    for one in queries:
        with one.running():
            eventually(one.acquire, awaited="a batch is in the log")
    record_count = batch_record_count(second)
    first.drain_available()
    with second.running():
        assert second.metrics["omitted"] == record_count > 0
    assert written(queries) == Counter(numbered(RECORDS))


def test_a_batch_that_was_cut_short_is_whole_if_its_query_is_back_first(
    cluster: Cluster, tmp_path: Path
) -> None:
    first, second = queries = queries_of(cluster, tmp_path, 2, maxRecordsPerBatch=100)
    with first.running():
        eventually(first.acquire, awaited="a batch is in the log")
    first.drain_available()
    assert first.end["metrics"]["omitted"] == 0
    second.drain_available()
    assert not second.rows
    assert written(queries) == Counter(numbered(RECORDS))


def test_a_query_that_is_told_of_its_commit_acknowledges_before_it_leaves(
    cluster: Cluster, tmp_path: Path
) -> None:
    first, second = queries = queries_of(cluster, tmp_path, 2, maxRecordsPerBatch=100)
    files = StateFiles(state_dir(tmp_path, 0))
    with first.running():
        eventually(lambda: first.trigger() is not None, awaited="a batch is done")
        files.ask_to_stop()
        files.note_committed({first.end["member"]: first.end["sequence"]})
    second.drain_available()
    first.drain_available()
    assert written(queries) == Counter(numbered(RECORDS))
    assert first.end["metrics"]["twice"] == 0


def test_a_query_that_is_asked_to_stop_acquires_nothing_more(cluster: Cluster, tmp_path: Path) -> None:
    (first,) = queries_of(cluster, tmp_path, 1, maxRecordsPerBatch=100)
    with first.running():
        eventually(lambda: first.trigger() is not None, awaited="a batch is done")
        StateFiles(state_dir(tmp_path, 0)).ask_to_stop()
        assert first.trigger() is None
    first.drain_available()
    assert first.values == sorted(numbered(RECORDS))


def test_a_batch_that_was_not_acknowledged_and_that_another_query_got_is_reported(
    cluster: Cluster, tmp_path: Path
) -> None:
    first, second = queries_of(cluster, tmp_path, 2, maxRecordsPerBatch=100)
    with first.running():
        eventually(lambda: first.trigger() is not None, awaited="a batch is done")
    second.drain_available()
    with first.running(available_now=True):
        assert first.trigger() is None
        assert first.metrics["twice"] == 100
