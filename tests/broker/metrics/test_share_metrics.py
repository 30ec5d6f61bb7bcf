"""The metrics of share groups, with the names in docs/metrics.md."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from barnabas.broker.http import exposition, loop_lag
from barnabas.protocol.identity import TopicIdPartition
from tests.conformance.harness import Lab, open_lab
from tests.conformance.share_member import ACCEPT, GAP, REJECT, RELEASE, RENEW, ShareMember

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "metrics.md"
HISTOGRAM_PARTS = re.compile(r"_(bucket|count|sum)$")
LOCK_MS = 15_000


class Stage:
    """A topic of two partitions with ten records in the first, and a member of a group that reads both."""

    def __init__(self, lab: Lab, partitions: list[TopicIdPartition]) -> None:
        self.lab = lab
        self.partition = partitions[0]
        self.partitions = partitions
        self.member = self.new_member("member-1")

    def new_member(self, member_id: str) -> ShareMember:
        return ShareMember(self.lab.client(), self.partitions, member_id=member_id)

    def count(self, name: str, **labels: object) -> float:
        """One value; those of share-partitions are of the group's first."""
        if name.startswith("sharepartitionmetrics_"):
            labels |= {"group": "group", "topic": "t", "partition": 0}
        text = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
        return self.lab.broker.metrics.snapshot()[f"kafka_server_{name}" + (f"{{{text}}}" if text else "")]

    def acknowledged(self) -> dict[str, float]:
        kinds = ("Accept", "Release", "Reject", "Renew")
        name = "sharegroupmetrics_recordacknowledgements_total"
        return {kind: self.count(name, ackType=kind) for kind in kinds}


@asynccontextmanager
async def staged(**settings: str) -> AsyncGenerator[Stage]:
    async with open_lab(**settings) as lab:
        topic_id = await lab.create_topic("t", partition_count=2)
        await lab.configure_group("group", auto_offset_reset="earliest", record_lock_duration_ms=LOCK_MS)
        await lab.produce(topic_id, 10)
        stage = Stage(lab, [TopicIdPartition(topic_id, index) for index in (0, 1)])
        await stage.member.join("t")
        yield stage


def documented() -> set[str]:
    """The Prometheus names of all tables."""
    rows = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`((?:kafka|barnabas)_[a-z_]+)`", row)}


def families(snapshot: Mapping[str, float]) -> set[str]:
    """The names of a snapshot, without labels and a histogram's parts."""
    names = {key.partition("{")[0] for key in snapshot}
    histograms = {name.removesuffix("_bucket") for name in names if name.endswith("_bucket")}
    parts = {histogram + part for histogram in histograms for part in ("_bucket", "_count", "_sum")}
    return (names - parts) | histograms


async def test_acknowledged_records_are_counted_by_type_once_durable() -> None:
    async with staged() as stage:
        await stage.member.fetch()
        types = (ACCEPT, RELEASE, REJECT, GAP, ACCEPT)
        await stage.member.acknowledge([(0, 4, *types), (5, 5, RELEASE), (6, 6, ACCEPT)])
        assert stage.acknowledged() == {"Accept": 3, "Release": 2, "Reject": 1, "Renew": 0}
        await stage.member.acknowledge([(7, 9, RENEW)], renew=True)
        assert stage.acknowledged()["Renew"] == 3
        refused = await stage.member.acknowledge([(1, 1, ACCEPT), (8, 8, ACCEPT)])
        assert refused.errors != [0]
        assert stage.acknowledged()["Accept"] == 3


async def test_requests_are_counted_for_each_topic_and_failures_again() -> None:
    async with staged() as stage:
        total, failed = (
            f"brokertopicmetrics_{kind}shareacknowledgementrequests_total" for kind in ("total", "failed")
        )
        await stage.member.fetch()
        await stage.member.acknowledge([(5, 5, ACCEPT)])
        await stage.member.acknowledge([(5, 5, ACCEPT), (9, 9, ACCEPT)])
        assert [stage.count(total), stage.count(total, topic="t")] == [2, 2]
        assert [stage.count(failed), stage.count(failed, topic="t")] == [1, 1]
        fetches = "brokertopicmetrics_totalsharefetchrequests_total"
        assert [stage.count(fetches), stage.count(fetches, topic="t")] == [1, 1]


async def test_a_fetch_with_an_error_is_a_failed_one() -> None:
    async with staged() as stage:
        missing = TopicIdPartition(stage.partition.topic_id, 7)
        got = await ShareMember(stage.lab.client(), [missing], member_id="other").fetch(max_wait=0)
        assert got.errors == [3]
        failed = "brokertopicmetrics_failedsharefetchrequests_total"
        assert [stage.count(failed), stage.count(failed, topic="t")] == [1, 1]


async def test_the_counts_of_a_deleted_topic_are_gone() -> None:
    async with staged() as stage:
        await stage.member.fetch()
        await stage.lab.admin.ask("delete_topics", 3, topic_names=["t"])
        snapshot = stage.lab.broker.metrics.snapshot()
        assert [name for name in snapshot if "topic=t" in name and name.startswith("kafka_")] == []


async def test_records_in_flight_and_expired_locks_are_counted() -> None:
    async with staged() as stage:
        await stage.member.fetch()
        assert stage.count("sharepartitionmetrics_inflightmessagecount") == 10
        assert stage.count("sharepartitionmetrics_inflightbatchcount") == 1
        assert stage.count("sharepartitionmetrics_inflightbatchmessagecount_sum") == 10
        await stage.member.acknowledge([(0, 3, ACCEPT)])
        assert stage.count("sharepartitionmetrics_inflightmessagecount") == 6
        await stage.lab.advance(LOCK_MS)
        assert stage.count("sharepartitionmetrics_acquisitionlocktimeout_total") == 6
        await stage.member.fetch()
        assert stage.count("sharepartitionmetrics_inflightbatchmessagecount_count") == 1
        assert stage.count("sharepartitionmetrics_fetchlocktimems_count") == 2
        assert stage.count("sharepartitionmetrics_fetchlockratio_count") == 2


async def test_records_acquired_before_a_crash_are_counted_when_in_flight_again() -> None:
    async with staged() as stage:
        await stage.member.fetch()
        await stage.member.acknowledge([(7, 7, ACCEPT)])
        await stage.lab.crash()
        again = ShareMember(stage.lab.client(), [stage.partition], member_id="again")
        await again.join("t")
        await again.fetch()
        assert stage.count("sharepartitionmetrics_inflightbatchmessagecount_count") == 3
        assert stage.count("sharepartitionmetrics_inflightbatchmessagecount_sum") == 10


async def test_waits_are_counted_while_they_last_and_when_they_expire() -> None:
    async with staged() as stage:
        await stage.member.fetch()
        waiting = stage.member.start_fetch(max_wait=500)
        waits = "delayedoperationpurgatory_numdelayedoperations"
        assert stage.count(waits, delayedOperation="ShareFetch") == 1
        assert stage.count("delayedoperationpurgatory_purgatorysize", delayedOperation="ShareFetch") == 4
        await stage.lab.advance(500)
        await stage.lab.answered(waiting)
        assert stage.count(waits, delayedOperation="ShareFetch") == 0
        assert stage.count("delayedsharefetchmetrics_expires_total") == 1
        ratio = "sharegroupmetrics_requesttopicpartitionsfetchratio"
        assert [stage.count(f"{ratio}_{part}", group="group") for part in ("count", "sum")] == [2, 50]
        acquired = "sharegroupmetrics_topicpartitionsacquiretimems"
        assert [stage.count(f"{acquired}_{part}", group="group") for part in ("count", "sum")] == [2, 500]


async def test_sessions_are_counted_and_those_that_end_with_their_connection() -> None:
    async with staged() as stage:
        other = stage.new_member("member-2")
        for member in (stage.member, other):
            await member.fetch(max_wait=0)
        assert stage.count("sharesessioncache_sharesessionscount") == 2
        assert stage.count("sharesessioncache_sharepartitionscount") == 4
        await other.acknowledge([], epoch=-1)
        stage.member.client.disconnect()
        assert stage.count("sharesessioncache_sharesessionscount") == 0
        assert stage.count("sharesessioncache_sharesessionevictions_total") == 1


async def test_groups_are_counted_by_type_and_state_and_their_rebalances() -> None:
    async with staged() as stage:
        counted = {
            state: stage.count("group_coordinator_metrics_share_group_count", state=state)
            for state in ("empty", "stable", "dead")
        }
        assert counted == {"empty": 0, "stable": 1, "dead": 0}
        assert stage.count("group_coordinator_metrics_group_count", protocol="share") == 1
        assert stage.count("group_coordinator_metrics_share_group_rebalance_total") == 1
        await stage.new_member("member-2").join("t")
        assert stage.count("group_coordinator_metrics_share_group_rebalance_total") == 2


@pytest.mark.parametrize("store", ["log", "topic"])
async def test_writes_of_leaders_are_counted_in_either_store(store: str) -> None:
    async with staged(share__state__store=store) as stage:
        await stage.member.fetch()
        before = stage.count("share_coordinator_metrics_write_total")
        await stage.member.acknowledge([(0, 3, ACCEPT)])
        await stage.member.acknowledge([(4, 9, ACCEPT)])
        assert stage.count("share_coordinator_metrics_write_total") == before + 2
        assert stage.count("share_coordinator_metrics_write_latency_count") == before + 2


async def test_the_age_of_the_oldest_lock_begins_with_the_acquisition_and_not_with_a_renewal() -> None:
    async with staged() as stage:
        name = "barnabas_share_oldest_lock_age_ms{group=group,partition=0,topic=t}"
        await stage.member.take(10)
        for renewals in range(1, 4):
            await stage.lab.advance(10_000)
            await stage.member.acknowledge([(3, 3, RENEW)], renew=True)
            assert stage.lab.broker.metrics.snapshot()[name] == renewals * 10_000
        await stage.member.acknowledge([(3, 3, ACCEPT)])
        assert stage.lab.broker.metrics.snapshot()[name] == 0
        await stage.member.take(10)
        await stage.lab.advance(1_000)
        assert stage.lab.broker.metrics.snapshot()[name] == 1_000


async def test_locks_are_counted_with_the_age_of_the_oldest() -> None:
    async with staged() as stage:
        labels = "{group=group,partition=0,topic=t}"
        await stage.lab.produce(stage.partition.topic_id, 5)

        def values() -> tuple[float, ...]:
            snapshot = stage.lab.broker.metrics.snapshot()
            names = ("locked_records", "oldest_lock_age_ms", "redelivered_records_total", "lag_records")
            return tuple(snapshot[f"barnabas_share_{name}{labels}"] for name in names)

        await stage.member.take(10, batch_size=10)
        assert values() == (10, 0, 0, 15)
        await stage.lab.advance(5_000)
        await stage.member.acknowledge([(0, 3, ACCEPT)])
        await stage.member.take(5)
        assert values() == (11, 5_000, 0, 11)
        await stage.member.acknowledge([(4, 9, RELEASE)])
        assert values()[:2] == (5, 0)
        await stage.member.take(6)
        assert values() == (11, 0, 6, 11)


async def test_a_group_without_leaders_in_memory_has_no_series() -> None:
    async with staged() as stage:
        await stage.member.fetch()
        await stage.member.acknowledge([(0, 9, ACCEPT)])
        await stage.member.acknowledge([], epoch=-1)
        await stage.lab.advance(300_000)
        labelled = [name for name in stage.lab.broker.metrics.snapshot() if "group=group" in name]
        assert [name for name in labelled if not name.startswith("barnabas_")] == []


async def test_the_document_names_exactly_the_published_metrics() -> None:
    names: set[str] = {
        "barnabas_connections",
        "barnabas_connections_refused_total",
        "barnabas_connections_idle_closed_total",
    }  # of the server, which a lab does not have
    for store in ("log", "topic"):
        async with staged(share__state__store=store) as stage:
            await stage.member.fetch()
            await stage.member.acknowledge([(0, 8, ACCEPT)])
            # Its topic would have to begin with "dlq.", so the letter cannot be written.
            settings = {
                "errors.deadletterqueue.topic.name": "letters",
                "share.partition.max.record.locks": "100",
            }
            await stage.lab.set_group_configs("group", settings)
            await stage.member.acknowledge([(9, 9, REJECT)])
            await stage.lab.produce(stage.partitions[0].topic_id, 100)
            await stage.member.fetch()
            await stage.lab.advance(1_000)
            names |= families(stage.lab.broker.metrics.snapshot())
            names |= {loop_lag.NAME, exposition.MERGED}  # they exist while HTTP is served
            # Written only once a partition of the topic was pruned.
            names.add("kafka_server_share_coordinator_metrics_last_pruned_offset")
            # Published only while a partition is stalled: tests/conformance/test_delays.py.
            names.add("barnabas_share_delayed_stalled")
    assert names == documented()
