"""The age of the oldest record that is not final, for each share-partition."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import SharePartitionKey
from barnabas.share.leader import oldest_records
from barnabas.share.leader.oldest_records import LOOK_UP_AGAIN_MS
from tests.broker.http.api.working_group import WorkingGroup, working_group
from tests.conformance.harness import batch, produce_fields
from tests.conformance.share_member import ACCEPT, RENEW
from tests.conformance.test_damage import spoil

IDLE_MS = 300_000


def age_ms(group: WorkingGroup, partition: int = 0) -> float | None:
    """None without a series."""
    snapshot = group.http.lab.broker.metrics.snapshot()
    return snapshot.get(f"barnabas_share_oldest_record_age_ms{{group=group,partition={partition},topic=t}}")


async def load(group: WorkingGroup) -> None:
    """Loads the state of the first partition, without a fetch."""
    await group.http.lab.broker.fetch_source.load_leader(SharePartitionKey("group", *group.partition))


async def make_idle(group: WorkingGroup) -> None:
    """Waits until the group has no leader in memory any more."""
    await group.member.leave_session()
    await group.http.lab.advance(IDLE_MS)
    assert not list(group.http.lab.broker.share_partitions)


async def test_the_age_is_0_without_a_lag() -> None:
    async with working_group(5) as group:
        await group.member.take(5)
        await group.member.accept(0, 4)
        await group.http.lab.advance(7_000)
        assert [age_ms(group), age_ms(group, partition=1)] == [0, 0]


async def test_a_group_that_has_not_begun_has_no_age() -> None:
    async with working_group(5) as group:
        await load(group)
        assert age_ms(group) is None


@pytest.mark.parametrize("store", ["log", "topic"])
async def test_the_age_grows_while_a_member_holds_the_record_and_renews_its_lock(store: str) -> None:
    async with working_group(1, store=store) as group:
        await group.member.take(1)
        for renewals in range(1, 4):
            await group.http.lab.advance(10_000)
            await group.member.acknowledge([(0, 0, RENEW)], renew=True)
            assert age_ms(group) == renewals * 10_000


async def test_after_an_acknowledgement_the_age_is_that_of_the_next_record() -> None:
    async with working_group(2) as group:
        await group.http.lab.advance(1_000)
        await group.http.lab.produce(group.partition.topic_id, 2)
        await group.http.lab.advance(500)
        await group.member.take(4)
        ages: list[float | None] = []
        for offset in (1, 0, 2, 3):
            await group.member.acknowledge([(offset, offset, ACCEPT)])
            ages.append(age_ms(group))
        assert ages == [1_500, 500, 500, 0]


async def test_a_record_from_the_future_has_the_age_0() -> None:
    async with working_group(1) as group:
        await group.member.take(1)
        await group.member.accept(0, 0)
        ahead = batch(1, group.http.lab.clock.wall_ms() + 60_000)
        sent = await group.http.lab.admin.ask("produce", **produce_fields(group.partition.topic_id, 0, ahead))
        assert sent.responses[0].partition_responses[0].error_code is ErrorCode.none
        assert age_ms(group) == 0
        await group.http.lab.advance(61_000)
        assert age_ms(group) == 1_000


async def test_the_age_stays_known_without_a_leader() -> None:
    async with working_group(2) as group:
        await group.http.lab.advance(1_000)
        await group.http.lab.produce(group.partition.topic_id, 1)
        await group.member.take(3)
        await group.member.accept(0, 0)
        await make_idle(group)
        assert age_ms(group) == IDLE_MS + 1_000
        await group.http.lab.delete_records("t", 2)
        assert age_ms(group) == IDLE_MS


async def test_a_record_that_arrives_while_no_leader_is_there_begins_at_its_own_time() -> None:
    async with working_group(1) as group:
        await group.member.take(1)
        await group.member.accept(0, 0)
        await make_idle(group)
        assert age_ms(group) == 0
        await group.http.lab.produce(group.partition.topic_id, 1)
        await group.http.lab.advance(2_000)
        assert age_ms(group) == 2_000


async def test_the_log_is_read_again_only_after_the_start_offset_has_moved() -> None:
    async with working_group(1, 1) as group:
        filesystem = group.http.lab.filesystem
        await group.member.take(2)
        assert age_ms(group) == 0
        filesystem.read_count = 0
        await group.http.lab.advance(5_000)
        assert age_ms(group) == 5_000
        assert filesystem.read_count == 0
        await group.member.accept(0, 0)
        filesystem.read_count = 0
        assert age_ms(group) == 5_000
        assert filesystem.read_count > 0


async def test_a_damaged_batch_has_no_age_and_is_tried_again_later() -> None:
    async with working_group(1, 1) as group:
        lab = group.http.lab
        await group.member.take(2)
        await lab.produce(group.partition.topic_id, 1, partition=1)
        await group.member.leave_session()
        await lab.restart()
        spoil(lab, 0)
        await load(group)
        assert age_ms(group) is None
        assert lab.broker.metrics.snapshot()["barnabas_corrupt_batches"] == 1
        spoil(lab, 0)  # the bit is right again
        await lab.advance(LOOK_UP_AGAIN_MS - 1)
        assert age_ms(group) is None
        await lab.advance(1)
        assert age_ms(group) == LOOK_UP_AGAIN_MS + 10  # with the restart


async def test_an_offline_log_has_no_age() -> None:
    async with working_group(1) as group:
        lab = group.http.lab
        await lab.produce(group.partition.topic_id, 1, partition=1)
        await group.member.take(2)
        assert [age_ms(group), age_ms(group, partition=1)] == [0, 0]
        with lab.broken_disk("t-0"):
            failed = await lab.admin.ask(
                "produce", **produce_fields(group.partition.topic_id, 0, batch(1, lab.clock.wall_ms()))
            )
            assert failed.responses[0].partition_responses[0].error_code is ErrorCode.kafka_storage_error
            assert [age_ms(group), age_ms(group, partition=1)] == [None, 0]


async def test_a_deleted_topic_has_no_age() -> None:
    async with working_group(1) as group:
        await group.member.take(1)
        assert age_ms(group) == 0
        await group.http.lab.delete_topic("t")
        assert age_ms(group) is None


async def test_one_look_reads_a_bounded_number_of_timestamps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oldest_records, "LOOK_UPS_MAX", 1)
    async with working_group(1, 1) as group:
        await group.http.lab.produce(group.partition.topic_id, 1, partition=1)
        await group.member.take(3)
        await group.http.lab.advance(1_000)
        assert sorted([age_ms(group), age_ms(group, partition=1)], key=str) == [1_000, None]
        assert [age_ms(group), age_ms(group, partition=1)] == [1_000, 1_000]
