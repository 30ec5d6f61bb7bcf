"""The metrics of share groups."""

from __future__ import annotations

import pytest

from barnabas.protocol.identity import TopicIdPartition
from tests.broker.metrics.metrics_stage import LOCK_MS, staged
from tests.conformance.share_member import ACCEPT, GAP, REJECT, RELEASE, RENEW, ShareMember


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
