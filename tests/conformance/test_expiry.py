"""Records with a time to live, request by request, with both stores of share state."""

from __future__ import annotations

import pytest

from barnabas.protocol.delivery_state import Cause
from barnabas.share.sweep.sweep import SWEEP_INTERVAL_MS
from tests.conformance.conftest import Stage, with_log_store_only
from tests.conformance.dead_lettering import (
    EXPIRED,
    ON_FAILURE,
    letters,
    offsets_of_letters,
    use_dead_letters,
)
from tests.conformance.harness import settle
from tests.conformance.records_of_a_group import describe
from tests.conformance.share_member import ACCEPT, GROUP, REJECT, RELEASE, ShareMember
from tests.conformance.test_delays import member_of, metric
from tests.conformance.timed_records import HEADER, Timed, produce_timed

TTL_MS = 60_000
LOCK_MS = 30_000


async def expiring(stage: Stage, **configs: object) -> ShareMember:
    return await member_of(stage, record_ttl_ms=TTL_MS, **configs)


async def sweep(stage: Stage, count: int = 1) -> None:
    """Time for this number of sweeps."""
    for _ in range(count):
        await stage.lab.advance(SWEEP_INTERVAL_MS)
        await settle()


class TestFetches:
    async def test_an_expired_record_is_not_delivered(self, stage: Stage) -> None:
        member = await expiring(stage)
        await produce_timed(stage, [Timed(TTL_MS), Timed(TTL_MS - 10), Timed(TTL_MS + 5), Timed()])
        assert await member.take() == [(1, 1, 1), (3, 3, 1)]
        assert metric(stage, "expired_records_total") == 2
        await member.acknowledge([(1, 1, ACCEPT), (3, 3, ACCEPT)])
        assert await stage.offsets() == (4, 0)

    async def test_old_batches_are_passed_over_within_one_fetch(self, stage: Stage) -> None:
        member = await expiring(stage)
        for _ in range(3):
            await produce_timed(stage, [Timed(TTL_MS)] * 200)
        await produce_timed(stage, [Timed()])
        assert await member.take(max_records=100) == [(600, 600, 1)]
        assert metric(stage, "expired_records_total") == 600

    async def test_a_held_record_expires_when_its_lock_ends(self, stage: Stage) -> None:
        member = await expiring(stage, record_lock_duration_ms=LOCK_MS)
        await produce_timed(stage, [Timed(TTL_MS - 1_000)])
        assert await member.take() == [(0, 0, 1)]
        await stage.lab.advance(2_000)
        assert metric(stage, "expired_records_total") == 0
        await stage.lab.advance(LOCK_MS)
        assert await member.take() == []
        assert metric(stage, "expired_records_total") == 1

    async def test_a_held_record_can_be_accepted_beyond_its_time(self, stage: Stage) -> None:
        member = await expiring(stage)
        await produce_timed(stage, [Timed(TTL_MS - 1_000)])
        assert await member.take() == [(0, 0, 1)]
        await sweep(stage)
        assert (await member.acknowledge([(0, 0, ACCEPT)])).errors == [0]
        assert metric(stage, "expired_records_total") == 0

    async def test_a_released_record_that_has_expired_is_not_delivered_again(self, stage: Stage) -> None:
        member = await expiring(stage)
        await produce_timed(stage, [Timed(TTL_MS - 1_000), Timed()])
        assert await member.take() == [(0, 1, 1)]
        await stage.lab.advance(1_000)
        await member.acknowledge([(0, 1, RELEASE)])
        assert await member.take() == [(1, 1, 2)]

    async def test_a_delayed_record_expires_while_it_waits(self, stage: Stage) -> None:
        member = await expiring(stage, delay_header=HEADER)
        await produce_timed(stage, [Timed(delay=str(2 * TTL_MS)), Timed(TTL_MS - 5_000)])
        assert await member.take() == [(1, 1, 1)]
        await member.acknowledge([(1, 1, ACCEPT)])
        assert metric(stage, "delayed_records") == 1
        await stage.lab.advance(TTL_MS)
        await sweep(stage)
        assert (metric(stage, "delayed_records"), metric(stage, "expired_records_total")) == (0, 1)

    async def test_keys_keep_their_order(self, stage: Stage) -> None:
        member = await expiring(stage, order="key")
        await produce_timed(
            stage, [Timed(TTL_MS, key=b"a"), Timed(key=b"a"), Timed(key=b"a"), Timed(TTL_MS, key=b"b")]
        )
        assert await member.take() == [(1, 1, 1)]
        await member.acknowledge([(1, 1, ACCEPT)])
        assert await member.take() == [(2, 2, 1)]
        await member.acknowledge([(2, 2, ACCEPT)])
        assert await stage.offsets() == (4, 0)

    @with_log_store_only
    async def test_the_cause_is_recorded(self, stage: Stage) -> None:
        member = await expiring(stage)
        await produce_timed(stage, [Timed(), Timed(TTL_MS), Timed()])
        assert len(await member.take()) == 2
        page = await describe(stage.lab, stage.partition)
        assert page.causes == {1: (Cause.EXPIRED, None)}


class TestSweeps:
    async def test_records_expire_without_a_fetch(self, stage: Stage) -> None:
        """Records in flight and records that were never fetched."""
        member = await expiring(stage)
        await produce_timed(stage, [Timed()] * 3)
        assert await member.take(max_records=1) == [(0, 2, 1)]
        await member.acknowledge([(0, 0, ACCEPT), (1, 2, RELEASE)])
        await stage.produce(5)
        await member.leave_session()
        await stage.lab.advance(TTL_MS - SWEEP_INTERVAL_MS)
        assert (await stage.offsets())[1] == 7
        await sweep(stage, 2)
        assert (await stage.offsets())[1] == 0
        assert metric(stage, "expired_records_total") == 7

    @pytest.mark.parametrize("is_clean", [False, True])
    async def test_records_expire_after_a_restart_without_a_fetch(self, stage: Stage, is_clean: bool) -> None:
        member = await expiring(stage)
        await stage.produce(4)
        assert await member.take() == [(0, 3, 1)]
        await member.acknowledge([(0, 0, ACCEPT), (1, 3, RELEASE)])
        if is_clean:
            await stage.lab.restart(down_ms=TTL_MS)
        else:
            await stage.lab.crash()
            await stage.lab.advance(TTL_MS)
        await sweep(stage, 2)
        assert (await stage.offsets())[1] == 0

    async def test_young_records_stay(self, stage: Stage) -> None:
        member = await expiring(stage)
        await produce_timed(stage, [Timed(TTL_MS)] * 2 + [Timed()] * 2)
        await member.leave_session()
        await sweep(stage, 2)
        assert (await stage.offsets())[1] == 2
        assert await stage.member(2).take() == [(2, 3, 1)]

    async def test_a_changed_time_to_live_counts(self, stage: Stage) -> None:
        await expiring(stage)
        await stage.produce(2)
        await sweep(stage)
        await stage.lab.configure_group(GROUP, record_ttl_ms=1_000)
        await sweep(stage)
        assert (await stage.offsets())[1] == 0

    async def test_a_delay_holds_although_a_batch_has_expired_records(self, stage: Stage) -> None:
        member = await expiring(stage, delivery_delay_ms=10_000)
        await produce_timed(stage, [Timed(TTL_MS), Timed(), Timed()])
        await sweep(stage, 0)
        assert await member.take() == []
        await stage.lab.advance(10_000)
        assert await member.take() == [(1, 2, 1)]


class TestLetters:
    async def test_expired_records_get_letters(self, stage: Stage) -> None:
        await use_dead_letters(stage.lab)
        member = await expiring(stage)
        await produce_timed(stage, [Timed(TTL_MS)] * 3 + [Timed()])
        assert await member.take() == [(3, 3, 1)]
        assert [(one.offset, one.delivery_count, one.message) for one in await letters(stage.lab)] == [
            (offset, 0, EXPIRED) for offset in range(3)
        ]
        await member.acknowledge([(3, 3, ACCEPT)])
        assert await stage.offsets() == (4, 0)

    async def test_more_records_than_the_window_holds_get_letters_without_a_fetch(self, stage: Stage) -> None:
        await use_dead_letters(stage.lab)
        await expiring(stage, partition_max_record_locks=100)
        for _ in range(5):
            await produce_timed(stage, [Timed(TTL_MS)] * 70)
        for _ in range(12):
            await sweep(stage)
        assert len(await offsets_of_letters(stage.lab)) == 350
        assert (await stage.offsets())[1] == 0

    @pytest.mark.parametrize("is_clean", [False, True])
    async def test_letters_of_an_earlier_broker_are_written_without_a_fetch(
        self, stage: Stage, is_clean: bool
    ) -> None:
        """The letters wait for a topic when the broker ends; then the topic may be created."""
        await use_dead_letters(stage.lab, **{ON_FAILURE.replace(".", "__"): "hold"})
        await stage.lab.create_topic("dlq.group", errors__deadletterqueue__group__enable="false")
        await stage.produce(3)
        member = stage.member()
        assert await member.take() == [(0, 2, 1)]
        await member.acknowledge([(0, 2, REJECT)])
        if is_clean:
            await stage.lab.restart()
        else:
            await stage.lab.crash()
        await sweep(stage)
        assert await offsets_of_letters(stage.lab) == []
        await enable_letters(stage)
        await sweep(stage)
        assert await offsets_of_letters(stage.lab) == [0, 1, 2]
        assert (await stage.offsets())[1] == 0


async def enable_letters(stage: Stage) -> None:
    config = {"name": "errors.deadletterqueue.group.enable", "config_operation": 0, "value": "true"}
    resource = {"resource_type": 2, "resource_name": "dlq.group", "configs": [config]}
    response = await stage.lab.admin.ask("incremental_alter_configs", resources=[resource])
    assert response.responses[0].error_code == 0, response
