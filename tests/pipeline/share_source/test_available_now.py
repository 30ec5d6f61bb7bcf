"""Trigger.AvailableNow: a run reads the records at its start, and ends."""

from __future__ import annotations

from uuid import UUID

import pytest

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.share_source.available_now import ASSIGNMENT_MS_MAX, UNREACHABLE_MS_MAX, AvailableNow
from barnabas.pipeline.share_source.group_admin import GroupPosition
from barnabas.protocol.identity import TopicIdPartition
from tests.clients.cluster import Cluster, numbered
from tests.clients.polling import eventually
from tests.pipeline.share_source.driving import query

ORDERS = TopicIdPartition(UUID(int=1), 0)


@pytest.mark.parametrize(
    ("end_offset", "start_offset", "now_ms", "is_over"),
    [
        pytest.param(10, 10, 0, True, id="the group is done with it"),
        pytest.param(10, 9, 999, False, id="the group is not done"),
        pytest.param(10, -1, 999, False, id="the group has not begun"),
        pytest.param(10, 9, 1_000, True, id="nothing came for long enough"),
        pytest.param(0, -1, 0, True, id="there was nothing"),
    ],
)
def test_a_run_ends(end_offset: int, start_offset: int, now_ms: int, is_over: bool) -> None:
    now = AvailableNow({ORDERS: end_offset}, 1_000, 0)
    now.note_assignment([ORDERS], 0)
    assert now.is_over([ORDERS], {ORDERS: GroupPosition(start_offset, 0)}, now_ms) == is_over


def test_a_run_waits_for_its_first_assignment_but_not_for_ever() -> None:
    now = AvailableNow({ORDERS: 10}, 1_000, 0)
    replayed_ms = 2 * ASSIGNMENT_MS_MAX
    now.note_assignment([], replayed_ms)  # the group is joined when a former run's batch was run again
    assert not now.is_over([], None, replayed_ms + ASSIGNMENT_MS_MAX - 1)
    assert now.is_over([], None, replayed_ms + ASSIGNMENT_MS_MAX)


def test_a_run_whose_assignment_is_gone_for_a_while_is_not_over() -> None:
    now = AvailableNow({ORDERS: 10}, 1_000, 0)
    now.note_assignment([ORDERS], 0)
    now.note_assignment([], 2_000)
    now.note_read(False, 2_000)
    assert not now.is_over([], {}, 2_000)
    now.note_assignment([ORDERS], 4_000)
    now.note_read(True, 4_000)
    assert not now.is_over([ORDERS], None, 4_999)
    assert now.is_over([ORDERS], None, 5_000)


def test_the_time_that_a_batch_takes_is_no_time_without_records_or_brokers() -> None:
    now = AvailableNow({ORDERS: 10}, 1_000, 0)
    now.note_assignment([ORDERS], 0)
    done_ms = 2 * UNREACHABLE_MS_MAX
    now.go_on(done_ms)
    assert not now.is_over([ORDERS], None, done_ms + 200)
    now.note_read(False, done_ms + 200)
    with pytest.raises(PipelineError):
        now.note_read(False, done_ms + UNREACHABLE_MS_MAX)


def test_a_run_that_cannot_read_fails_rather_than_end() -> None:
    now = AvailableNow({ORDERS: 10}, 1_000, 0)
    now.note_assignment([ORDERS], 0)
    now.note_read(False, 5_000)
    assert not now.is_over([ORDERS], None, 5_500)
    with pytest.raises(PipelineError, match=r"^servers: some partitions could not be read for 60 s"):
        now.note_read(False, UNREACHABLE_MS_MAX)


def test_each_run_takes_the_records_at_its_start_and_no_later_ones(cluster: Cluster) -> None:
    topic, group = cluster.topic(2), cluster.group()
    cluster.produce(topic, numbered(300, "first"))
    reading = query(cluster, group, topic, maxRecordsPerBatch=100)

    def go_on(_: int) -> None:
        cluster.produce(topic, ["meanwhile"])

    reading.before_commit = go_on
    reading.drain_available()
    assert reading.values == sorted(numbered(300, "first"))
    reading.before_commit = None
    meanwhile_count = len(reading.sink)
    reading.drain_available()
    assert reading.values == sorted([*numbered(300, "first"), *["meanwhile"] * meanwhile_count])
    reading.drain_available()
    assert len(reading.rows) == 300 + meanwhile_count


def test_a_run_ends_though_others_hold_records(cluster: Cluster) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce(topic, numbered(10))
    other = query(cluster, group, topic)
    reading = query(cluster, group, topic, availableNowWaitMs=300)
    with other.running():
        eventually(other.acquire, awaited="the other member holds everything")
        reading.drain_available()
        assert reading.rows == []


def test_a_run_waits_for_records_that_others_release(cluster: Cluster) -> None:
    topic, group = cluster.topic(), cluster.group(record_lock_duration_ms=1_000)
    cluster.produce(topic, numbered(10))
    other = query(cluster, group, topic, renewLocks=False)
    reading = query(cluster, group, topic, availableNowWaitMs=5_000)
    with other.running():
        eventually(other.acquire, awaited="the other member holds everything")
        reading.drain_available()
    assert reading.values == sorted(numbered(10))


def test_a_run_reads_everything_even_if_fetches_need_not_wait(cluster: Cluster) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce(topic, numbered(10))
    reading = query(cluster, group, topic, maxWaitMs=0)
    reading.drain_available()
    assert reading.values == numbered(10)
