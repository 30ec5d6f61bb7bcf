"""Acknowledgements by ShareAcknowledge and ShareFetch, and acquisition locks (wire sheet, section 6)."""

from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from tests.conformance.conftest import Stage, make_stage, with_log_store_only, with_topic_store_only
from tests.conformance.harness import open_lab, settle
from tests.conformance.share_member import (
    ACCEPT,
    GAP,
    GROUP,
    REJECT,
    RELEASE,
    RENEW,
    AckBatches,
    ShareMember,
    acknowledged,
    fetched,
)

OK = ErrorCode.none
INVALID = ErrorCode.invalid_request
STATE = ErrorCode.invalid_record_state

MALFORMED: dict[str, tuple[AckBatches, bool]] = {
    "first behind last": ([(3, 2, ACCEPT)], False),
    "batches out of order": ([(2, 3, ACCEPT), (0, 1, ACCEPT)], False),
    "overlapping batches": ([(0, 3, ACCEPT), (2, 4, ACCEPT)], False),
    "no types": ([(0, 1)], False),
    "too few types": ([(0, 2, ACCEPT, ACCEPT)], False),
    "too many types": ([(0, 1, ACCEPT, ACCEPT, ACCEPT)], False),
    "a negative type": ([(0, 0, -1)], False),
    "an unknown type": ([(0, 0, 5)], False),
    "an unknown type among others": ([(0, 1, ACCEPT, 9)], True),
    "a renewal in a request that does not renew": ([(0, 0, RENEW)], False),
}


async def holding(stage: Stage, *batch_sizes: int, number: int = 1) -> ShareMember:
    """A member that holds all of these records."""
    await stage.produce(*batch_sizes)
    member = stage.member(number)
    total = sum(batch_sizes)
    assert sum(last - first + 1 for first, last, _ in await member.take(max_wait=1000)) == total
    return member


@pytest.mark.parametrize(("batches", "renew"), MALFORMED.values(), ids=MALFORMED)
async def test_malformed_batches_are_refused_and_change_nothing(
    stage: Stage, batches: AckBatches, renew: bool
) -> None:
    member = await holding(stage, 5)
    got = await member.acknowledge(batches, renew=renew)
    assert (got.error, got.errors) == (OK, [INVALID])
    await member.accept(0, 4)


@pytest.mark.parametrize(("batches", "renew"), MALFORMED.values(), ids=MALFORMED)
async def test_a_fetch_refuses_malformed_batches_as_well(
    stage: Stage, batches: AckBatches, renew: bool
) -> None:
    member = await holding(stage, 5)
    nothing = {"max_bytes": 0, "min_bytes": 0, "max_records": 0, "max_wait": 0}
    got = await member.fetch(batches, is_renew_ack=renew, **nothing)
    assert (got.error, got.acknowledge_errors) == (OK, [INVALID])


async def test_version_1_knows_no_renewal(stage: Stage) -> None:
    member = await holding(stage, 1)
    got = await member.acknowledge([(0, 0, RENEW)], version=1)
    assert (got.errors, got.lock_ms) == ([INVALID], None)


async def test_version_2_returns_the_lock_duration(stage: Stage) -> None:
    member = await holding(stage, 1)
    assert (await member.acknowledge([(0, 0, ACCEPT)], version=2)).lock_ms == 30_000


async def test_batches_that_share_an_offset_pass_the_check_and_fail_by_the_records_state(
    stage: Stage,
) -> None:
    member = await holding(stage, 3)
    assert (await member.acknowledge([(0, 1, ACCEPT), (1, 2, REJECT)])).errors == [STATE]
    await member.accept(0, 2)


@pytest.mark.parametrize(
    ("ack_type", "redelivered", "offsets"),
    [
        (GAP, [], (2, 0)),
        (ACCEPT, [], (2, 0)),
        (RELEASE, [(0, 1, 2)], (0, 2)),
        (REJECT, [], (2, 0)),
    ],
)
async def test_each_acknowledge_type_has_its_effect_on_the_record(
    stage: Stage, ack_type: int, redelivered: list[tuple[int, int, int]], offsets: tuple[int, int]
) -> None:
    member = await holding(stage, 2)
    assert (await member.acknowledge([(0, 1, ack_type)])).errors == [OK]
    assert await stage.offsets() == offsets
    assert await stage.member(2).take() == redelivered


async def test_each_offset_may_have_its_own_type(stage: Stage) -> None:
    member = await holding(stage, 4)
    assert (await member.acknowledge([(0, 3, ACCEPT, RELEASE, REJECT, GAP)])).errors == [OK]
    assert await stage.offsets() == (1, 1)
    assert await member.take() == [(1, 1, 2)]


async def test_a_release_at_the_delivery_limit_archives(stage: Stage) -> None:
    await stage.lab.configure_group(GROUP, delivery_count_limit=2)
    member = await holding(stage, 1)
    await member.acknowledge([(0, 0, RELEASE)])
    assert await member.take() == [(0, 0, 2)]
    assert (await member.acknowledge([(0, 0, RELEASE)])).errors == [OK]
    assert await member.take() == []
    assert await stage.offsets() == (1, 0)


async def test_the_limit_is_the_one_in_force_at_the_release(stage: Stage) -> None:
    member = await holding(stage, 1)
    await member.acknowledge([(0, 0, RELEASE)])
    await member.take()
    await stage.lab.configure_group(GROUP, delivery_count_limit=2)
    await member.acknowledge([(0, 0, RELEASE)])
    assert await stage.offsets() == (1, 0)


class TestRefused:
    async def test_records_that_are_not_acquired_are_refused(self, stage: Stage) -> None:
        member = await holding(stage, 3)
        await member.accept(1, 1)
        assert (await member.acknowledge([(1, 1, ACCEPT)])).errors == [STATE]
        await member.acknowledge([(2, 2, RELEASE)])
        assert (await member.acknowledge([(2, 2, ACCEPT)])).errors == [STATE]

    async def test_records_of_another_member_are_refused(self, stage: Stage) -> None:
        await holding(stage, 2)
        other = stage.member(2)
        await other.fetch()
        assert (await other.acknowledge([(0, 0, ACCEPT)])).errors == [STATE]

    async def test_records_are_refused_before_any_is_in_flight(self, stage: Stage) -> None:
        member = stage.member()
        await member.fetch()
        assert (await member.acknowledge([(0, 0, ACCEPT)])).errors == [STATE]

    @pytest.mark.parametrize("batch", [(2, 5, ACCEPT), (7, 9, ACCEPT)], ids=["last beyond", "both beyond"])
    async def test_records_beyond_those_in_flight_are_refused(
        self, stage: Stage, batch: tuple[int, ...]
    ) -> None:
        member = await holding(stage, 3)
        assert (await member.acknowledge([batch])).errors == [INVALID]
        await member.accept(0, 2)

    async def test_records_are_refused_before_any_fetch_since_the_start(self, stage: Stage) -> None:
        untouched = TopicIdPartition(await stage.lab.create_topic("u"), 0)
        member = stage.member()
        await member.fetch()
        got = await member.acknowledge({untouched: [(0, 0, ACCEPT)]})
        assert got.errors == [ErrorCode.unknown_topic_or_partition]

    async def test_unknown_topics_and_partitions_are_refused(self, stage: Stage) -> None:
        member = await holding(stage, 1)
        no_topic = TopicIdPartition(UUID(int=1), 0)
        no_partition = TopicIdPartition(stage.partition.topic_id, 5)
        got = await member.acknowledge(
            {no_topic: [(0, 0, ACCEPT)], no_partition: [(0, 0, ACCEPT)], stage.partition: [(0, 0, ACCEPT)]}
        )
        assert got.partitions == {
            no_topic: ErrorCode.unknown_topic_id,
            no_partition: ErrorCode.unknown_topic_or_partition,
            stage.partition: OK,
        }

    @pytest.mark.parametrize("member_id", ["", "m" * 37, None])
    async def test_a_wrong_member_id_is_refused(self, stage: Stage, member_id: str | None) -> None:
        pending = stage.lab.client().send(
            "share_acknowledge", group_id=GROUP, member_id=member_id, share_session_epoch=1
        )
        assert pending.response().error_code is INVALID

    async def test_a_request_without_a_group_is_refused(self, stage: Stage) -> None:
        pending = stage.lab.client().send("share_acknowledge", member_id="m", share_session_epoch=1)
        assert pending.response().error_code is INVALID


async def test_below_the_start_offset_late_acknowledgements_are_silent(stage: Stage) -> None:
    member = await holding(stage, 5)
    await member.accept(0, 2)
    assert (await member.acknowledge([(0, 2, ACCEPT)])).errors == [OK]
    assert (await member.acknowledge([(0, 3, REJECT)])).errors == [OK], "those below are skipped"
    assert await stage.offsets() == (4, 1)


async def test_one_wrong_batch_undoes_the_whole_partition_and_no_other(stage: Stage) -> None:
    topic_id = await stage.lab.create_topic("u", 1)
    other = TopicIdPartition(topic_id, 0)
    await stage.member().heartbeat(2, ["t", "u"])
    await stage.produce(4)
    await stage.lab.produce(topic_id, 2)
    member = stage.member()
    member.partitions.append(other)
    await member.take()
    await member.accept(3, 3)
    got = await member.acknowledge(
        {stage.partition: [(0, 1, ACCEPT), (3, 3, ACCEPT)], other: [(0, 1, ACCEPT)]}
    )
    assert got.partitions == {stage.partition: STATE, other: OK}
    assert await stage.offsets() == (0, 3)
    await member.accept(0, 2)


async def test_a_second_change_of_a_record_is_refused_while_the_first_is_written() -> None:
    async with open_lab(log__flush="always") as lab:
        stage = await make_stage(lab)
        member = await holding(stage, 2)
        with lab.stalled_disk():
            pending = member.start_acknowledge([(0, 0, ACCEPT)])
            await settle()
            assert not pending.done, "no answer before the bytes are in the file"
            assert (await member.acknowledge([(0, 0, REJECT)])).errors == [STATE]
        assert acknowledged(await lab.answered(pending)).errors == [OK]
        assert await stage.offsets() == (1, 1)


async def test_locks_do_not_expire_under_an_acknowledgement_that_is_being_written() -> None:
    async with open_lab(log__flush="always") as lab:
        stage = await make_stage(lab)
        member = await holding(stage, 1)
        with lab.stalled_disk():
            pending = member.start_acknowledge([(0, 0, ACCEPT)])
            await lab.advance(30_000)
            assert await stage.member(2).take(max_wait=0) == []
        assert acknowledged(await lab.answered(pending)).errors == [OK]
        assert await stage.offsets() == (1, 0)


@with_topic_store_only
async def test_a_lock_that_ended_under_an_acknowledgement_ends_once_the_write_has_failed() -> None:
    async with open_lab(log__flush="always") as lab:
        stage = await make_stage(lab)
        member = await holding(stage, 1)
        with lab.broken_disk(lab.state_directory(GROUP, stage.partition)):
            with lab.stalled_disk():
                pending = member.start_acknowledge([(0, 0, ACCEPT)])
                await lab.advance(30_000)
            assert acknowledged(await lab.answered(pending)).errors == [ErrorCode.kafka_storage_error]
        await lab.advance(0)
        assert await stage.member(2).take() == [(0, 0, 2)]


async def test_a_batch_list_that_is_empty_is_answered_by_nothing(stage: Stage) -> None:
    member = await holding(stage, 1)
    got = await member.acknowledge({stage.partition: []})
    assert (got.error, got.partitions) == (OK, {})


class TestLocks:
    async def test_expire_after_their_duration_and_leave_the_count_unchanged(self, stage: Stage) -> None:
        member = await holding(stage, 2)
        await stage.lab.advance(29_999)
        assert await stage.member(2).take() == []
        await stage.lab.advance(1)
        assert await stage.member(3).take() == [(0, 1, 2)]
        assert (await member.acknowledge([(0, 0, ACCEPT)])).errors == [STATE]

    async def test_expire_into_the_archive_at_the_delivery_limit(self, stage: Stage) -> None:
        await stage.lab.configure_group(GROUP, delivery_count_limit=2)
        await holding(stage, 1)
        await stage.lab.advance(30_000)
        assert await stage.member(2).take() == [(0, 0, 2)]
        await stage.lab.advance(30_000)
        assert await stage.offsets() == (1, 0)

    async def test_keep_the_duration_from_when_they_began(self, stage: Stage) -> None:
        await holding(stage, 1)
        await stage.lab.configure_group(GROUP, record_lock_duration_ms=15_000)
        assert (await stage.member(2).fetch()).lock_ms == 15_000
        await stage.lab.advance(15_000)
        assert await stage.member(3).take() == []
        await stage.lab.advance(15_000)
        assert await stage.member(4).take() == [(0, 0, 2)]

    @pytest.mark.parametrize("by_fetch", [True, False])
    async def test_begin_again_by_renewal(self, stage: Stage, by_fetch: bool) -> None:
        member = await holding(stage, 2)
        await stage.lab.advance(20_000)
        if by_fetch:
            nothing = {"max_bytes": 0, "min_bytes": 0, "max_records": 0, "max_wait": 0}
            renewed = await member.fetch([(0, 0, RENEW)], is_renew_ack=True, **nothing)
            assert renewed.acknowledge_errors == [OK]
        else:
            assert (await member.acknowledge([(0, 0, RENEW)], renew=True)).errors == [OK]
        await stage.lab.advance(10_000)
        assert await stage.member(2).take() == [(1, 1, 2)]
        await stage.lab.advance(19_999)
        assert await stage.member(3).take() == []
        await stage.lab.advance(1)
        assert await stage.member(4).take() == [(0, 0, 2)]

    async def test_renewed_have_the_duration_of_then_though_it_is_shorter(self, stage: Stage) -> None:
        member = await holding(stage, 1)
        await stage.lab.configure_group(GROUP, record_lock_duration_ms=15_000)
        assert (await member.acknowledge([(0, 0, RENEW)], renew=True)).errors == [OK]
        await stage.lab.advance(15_000)
        assert await stage.member(2).take() == [(0, 0, 2)]

    async def test_may_be_renewed_again_and_again(self, stage: Stage) -> None:
        member = await holding(stage, 1)
        for _ in range(5):
            await stage.lab.advance(29_000)
            assert (await member.acknowledge([(0, 0, RENEW)], renew=True)).errors == [OK]
        await member.accept(0, 0)

    async def test_are_not_renewed_where_the_group_forbids_it(self, stage: Stage) -> None:
        await stage.lab.configure_group(GROUP, renew_acknowledge_enable="false")
        member = await holding(stage, 1)
        assert (await member.acknowledge([(0, 0, RENEW)], renew=True)).errors == [STATE]

    async def test_stay_renewed_though_a_later_batch_fails(self, stage: Stage) -> None:
        member = await holding(stage, 3)
        await stage.lab.advance(20_000)
        got = await member.acknowledge([(0, 1, RENEW), (7, 9, RENEW)], renew=True)
        assert got.errors == [INVALID]
        await stage.lab.advance(10_000)
        assert await stage.member(2).take() == [(2, 2, 2)]

    async def test_renewal_needs_the_lock(self, stage: Stage) -> None:
        member = await holding(stage, 1)
        await stage.lab.advance(30_000)
        assert (await member.acknowledge([(0, 0, RENEW)], renew=True)).errors == [STATE]

    async def test_a_renewing_request_may_accept_as_well(self, stage: Stage) -> None:
        member = await holding(stage, 2)
        assert (await member.acknowledge([(0, 1, ACCEPT, RENEW)], renew=True)).errors == [OK]
        assert await stage.offsets() == (1, 1)


async def test_a_write_that_fails_leaves_the_records_as_they_were(stage: Stage) -> None:
    member = await holding(stage, 2)
    with stage.lab.broken_disk(stage.lab.state_directory(GROUP, stage.partition)):
        got = await member.acknowledge([(0, 1, ACCEPT)])
        assert got.errors == [ErrorCode.kafka_storage_error]
    await stage.lab.crash()
    again = stage.member()
    assert await again.take() == [(0, 1, 1)]


@with_log_store_only
@pytest.mark.parametrize("first_fetch", [True, False])
async def test_a_log_that_is_offline_is_the_error_of_its_partition(stage: Stage, first_fetch: bool) -> None:
    member = await holding(stage, 2, 2)
    with stage.lab.broken_disk("t-0"):
        await member.acknowledge([(0, 1, ACCEPT)])
    asks = stage.member(2) if first_fetch else member
    pending = asks.start_fetch(max_wait=500)
    # At the end of the wait, so that a client does not ask a broken disk again and again.
    await stage.lab.advance(500)
    got = fetched(pending.response())
    assert (got.error, got.errors) == (OK, [ErrorCode.kafka_storage_error])
    assert (await member.acknowledge([(0, 1, ACCEPT)])).errors == [ErrorCode.kafka_storage_error]
