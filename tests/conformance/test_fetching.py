"""ShareFetch except acquisition: its checks, its answers, its wait (wire sheet, section 5)."""

from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from tests.conformance.conftest import Stage
from tests.conformance.harness import Lab, batch, partitions_of, produce_fields, settle
from tests.conformance.share_member import (
    ACCEPT,
    GROUP,
    REJECT,
    RELEASE,
    RENEW,
    ShareMember,
    acknowledged,
    fetched,
)

INVALID = ErrorCode.invalid_request
NOTHING_TO_FETCH: dict[str, Any] = {"max_bytes": 0, "min_bytes": 0, "max_records": 0, "max_wait": 0}


class TestChecks:
    @pytest.mark.parametrize("version", [1, 2])
    @pytest.mark.parametrize(
        "fields",
        [{"group_id": None}, {"member_id": None}, {"member_id": ""}, {"member_id": "m" * 37}],
        ids=str,
    )
    async def test_of_member_and_group_come_first(
        self, stage: Stage, version: int, fields: dict[str, Any]
    ) -> None:
        got = await stage.member().fetch(epoch=5, version=version, **fields)
        assert got == (INVALID, 0, {})

    @pytest.mark.parametrize("field", ["max_bytes", "min_bytes", "max_records", "max_wait"])
    async def test_a_renewing_fetch_must_not_fetch(self, stage: Stage, field: str) -> None:
        await stage.produce(1)
        member = stage.member()
        await member.take()
        asked = {**NOTHING_TO_FETCH, field: 1}
        refused = await member.fetch([(0, 0, RENEW)], epoch=1, is_renew_ack=True, **asked)
        assert refused == (INVALID, 0, {})
        assert (await member.fetch(epoch=1)).error == ErrorCode.none, "the epoch isn't used up"

    async def test_a_wrong_renewal_is_reported_before_a_wrong_epoch(self, stage: Stage) -> None:
        got = await stage.member().fetch(epoch=7, is_renew_ack=True)
        assert got.error == INVALID

    async def test_an_unknown_acquire_mode_is_refused_and_uses_up_nothing(self, stage: Stage) -> None:
        member = stage.member()
        await member.fetch()
        assert (await member.fetch(epoch=1, share_acquire_mode=7)) == (INVALID, 0, {})
        assert (await member.fetch(epoch=1)).error == ErrorCode.none

    async def test_an_unread_partition_gets_its_error_at_the_end_of_the_wait(self, stage: Stage) -> None:
        member = ShareMember(stage.lab.client(), [stage.partition], group_id="nobody")
        pending = member.start_fetch(max_wait=300)
        await stage.lab.advance(299)
        assert not pending.done
        await stage.lab.advance(1)
        got = fetched(pending.response())
        assert (got.error, got.errors) == (0, [ErrorCode.unknown_server_error])


class TestAnswers:
    @pytest.mark.parametrize("version", [1, 2])
    async def test_have_the_groups_lock_duration(self, stage: Stage, version: int) -> None:
        await stage.lab.configure_group(GROUP, record_lock_duration_ms=20_000)
        assert (await stage.member().fetch(version=version)).lock_ms == 20_000

    async def test_a_partition_without_records_has_empty_records_not_null(self, stage: Stage) -> None:
        response = await stage.lab.answered(stage.member().start_fetch())
        answered = response.responses[0].partitions[0]
        assert answered.records == b""
        assert (answered.current_leader.leader_id, answered.current_leader.leader_epoch) == (0, 0)
        assert response.node_endpoints == ()

    @pytest.mark.parametrize("version", [1, 2])
    async def test_records_are_as_they_were_produced(self, stage: Stage, version: int) -> None:
        await stage.produce(3)
        got = await stage.member().fetch(version=version)
        assert got.partitions[stage.partition].offsets == [0, 1, 2]
        assert got.acquired == [(0, 2, 1)]

    @pytest.mark.parametrize("fields", [{"max_records": 0}, {"max_bytes": 0}], ids=str)
    async def test_without_room_for_records_only_acknowledgements_are_answered_and_at_once(
        self, stage: Stage, fields: dict[str, Any]
    ) -> None:
        await stage.produce(2, 1)
        member = stage.member()
        await member.take(1)
        pending = member.start_fetch([(0, 0, ACCEPT)], max_wait=5000, **fields)
        got = fetched(await stage.lab.answered(pending))
        assert (got.acknowledge_errors, got.acquired) == ([0], [])

    async def test_acknowledgements_and_records_come_in_one_answer(self, stage: Stage) -> None:
        await stage.produce(2, 2)
        member = stage.member()
        await member.take(2)
        got = await member.fetch([(0, 1, ACCEPT)])
        assert (got.acknowledge_errors, got.acquired) == ([0], [(2, 3, 1)])

    async def test_a_wrong_acknowledgement_leaves_the_fetch_alone(self, stage: Stage) -> None:
        await stage.produce(2, 2)
        member = stage.member()
        await member.take(2)
        got = await member.fetch([(5, 4, ACCEPT)])
        assert got.partitions[stage.partition][:3] == (0, INVALID, [(2, 3, 1)])

    async def test_a_renewing_fetch_renews_and_fetches_nothing(self, stage: Stage) -> None:
        await stage.produce(1, 1)
        member = stage.member()
        await member.take(1)
        got = await member.fetch([(0, 0, RENEW)], is_renew_ack=True, **NOTHING_TO_FETCH)
        assert (got.error, got.acknowledge_errors, got.acquired) == (0, [0], [])

    async def test_the_record_budget_is_one_over_all_partitions(self, lab: Lab) -> None:
        topic_id = await lab.create_topic("t", 2)
        await lab.configure_group(GROUP, auto_offset_reset="earliest")
        member = ShareMember(lab.client(), list(partitions_of(topic_id, 2)))
        await member.join("t")
        for partition in (0, 1):
            await lab.produce(topic_id, 3, 3, partition=partition)
        got = await member.fetch(max_records=4)
        assert sum(last - first + 1 for first, last, _ in got.acquired) == 6
        assert len([one for one in got.partitions.values() if one.acquired]) == 1

    async def test_bytes_are_split_evenly_over_the_partitions(self, lab: Lab) -> None:
        topic_id = await lab.create_topic("t", 2)
        await lab.configure_group(GROUP, auto_offset_reset="earliest")
        member = ShareMember(lab.client(), list(partitions_of(topic_id, 2)))
        await member.join("t")
        for partition in (0, 1):
            for _ in range(4):
                records = batch(1, lab.clock.wall_ms(), value_bytes=1000)
                await lab.admin.ask("produce", **produce_fields(topic_id, partition, records))
        got = await member.fetch(max_bytes=4400)
        assert [len(one.offsets) for one in got.partitions.values()] == [2, 2]

    async def test_the_first_batch_comes_however_large_it_is(self, stage: Stage) -> None:
        await stage.produce(100)
        assert await stage.member().take(max_bytes=1) == [(0, 99, 1)]


class TestWaiting:
    async def test_ends_with_nothing_at_max_wait(self, stage: Stage) -> None:
        pending = stage.member().start_fetch(max_wait=500)
        await stage.lab.advance(499)
        assert not pending.done
        await stage.lab.advance(1)
        assert fetched(pending.response()).acquired == []

    async def test_ends_when_records_arrive(self, stage: Stage) -> None:
        pending = stage.member().start_fetch(max_wait=500)
        await settle()
        await stage.produce(1)
        assert [count for *_, count in fetched(pending.response()).acquired] == [1]

    async def test_goes_on_until_min_bytes_are_there_and_then_acquires_them_all(self, stage: Stage) -> None:
        size = len(batch(1, 0))
        await stage.produce(1)
        enough = stage.member(1).start_fetch(max_wait=500, min_bytes=2 * size)
        await settle()
        assert not enough.done
        await stage.produce(1)
        assert len(fetched(enough.response()).acquired) >= 1
        too_few = stage.member(2).start_fetch(max_wait=500, min_bytes=10 * size)
        await stage.produce(1)
        assert not too_few.done
        await stage.lab.advance(500)
        assert len(fetched(too_few.response()).acquired) == 1

    async def test_ends_when_a_lock_expires(self, stage: Stage) -> None:
        await stage.produce(1)
        await stage.member(1).take()
        pending = stage.member(2).start_fetch(max_wait=60_000)
        await stage.lab.advance(29_999)
        assert not pending.done
        await stage.lab.advance(1)
        assert fetched(pending.response()).acquired == [(0, 0, 2)]

    async def test_ends_when_records_are_released(self, stage: Stage) -> None:
        await stage.produce(1)
        holder = stage.member(1)
        await holder.take()
        pending = stage.member(2).start_fetch(max_wait=500)
        await settle()
        await holder.acknowledge([(0, 0, RELEASE)])
        await settle()
        assert fetched(pending.response()).acquired == [(0, 0, 2)]

    async def test_ends_when_another_members_connection_is_lost(self, stage: Stage) -> None:
        await stage.produce(1)
        holder = stage.member(1)
        await holder.take()
        pending = stage.member(2).start_fetch(max_wait=500)
        await settle()
        holder.client.disconnect()
        await settle()
        assert fetched(pending.response()).acquired == [(0, 0, 2)]

    async def test_ends_when_an_acknowledgement_makes_room_in_the_window(self, stage: Stage) -> None:
        await stage.lab.configure_group(GROUP, partition_max_record_locks=100)
        await stage.produce(100, 5)
        holder = stage.member(1)
        await holder.take()
        pending = stage.member(2).start_fetch(max_wait=500)
        await settle()
        assert not pending.done
        await holder.accept(0, 9)
        await settle()
        assert fetched(pending.response()).acquired == [(100, 104, 1)]

    async def test_holds_nothing_meanwhile(self, stage: Stage) -> None:
        size = len(batch(1, 0))
        await stage.produce(1)
        waiting = stage.member(1).start_fetch(max_wait=500, min_bytes=9 * size)
        await settle()
        assert await stage.member(2).take() == [(0, 0, 1)]
        await stage.lab.advance(500)
        assert fetched(waiting.response()).acquired == []

    async def test_acknowledgements_take_effect_at_once_but_are_answered_with_the_fetch(
        self, stage: Stage
    ) -> None:
        await stage.produce(2)
        member = stage.member()
        await member.take()
        pending = member.start_fetch([(0, 1, ACCEPT)], max_wait=700)
        await settle()
        assert not pending.done
        assert await stage.offsets() == (2, 0)
        await stage.lab.advance(700)
        assert fetched(pending.response()).acknowledge_errors == [0]

    async def test_ends_with_the_error_of_a_partition(self, stage: Stage) -> None:
        unknown = TopicIdPartition(UUID(int=1), 0)
        member = ShareMember(stage.lab.client(), [stage.partition, unknown])
        got = fetched(await stage.lab.answered(member.start_fetch(max_wait=500)))
        assert got.partitions[unknown].error == ErrorCode.unknown_topic_id

    async def test_ends_when_its_topic_is_deleted(self, stage: Stage) -> None:
        pending = stage.member().start_fetch(max_wait=500)
        await settle()
        await stage.lab.delete_topic("t")
        assert fetched(pending.response()).errors == [ErrorCode.unknown_topic_id]

    async def test_of_a_lost_connection_takes_nothing(self, stage: Stage) -> None:
        member = stage.member(1)
        pending = member.start_fetch(max_wait=500)
        await settle()
        withdraw = getattr(pending.reply, "withdraw", None)
        assert withdraw is not None
        withdraw()
        member.client.disconnect()
        await stage.produce(1)
        assert await stage.member(2).take()

    async def test_ends_with_the_available_records_when_a_request_follows(self, stage: Stage) -> None:
        pending = stage.member().start_fetch(max_wait=500)
        await settle()
        hurry = getattr(pending.reply, "hurry", None)
        assert hurry is not None
        hurry()
        await settle()
        assert fetched(pending.response()).acquired == []


class TestLogStart:
    async def test_moving_above_the_group_moves_its_start_offset(self, stage: Stage) -> None:
        await stage.produce(4, 4)
        member = stage.member()
        assert await member.take(4) == [(0, 3, 1)]
        await stage.lab.delete_records("t", 6)
        late = await member.acknowledge([(0, 3, ACCEPT)])
        assert late.errors == [0], "a late acknowledgement is silent"
        assert await member.take() == [(6, 7, 1)]
        assert await stage.offsets() == (6, 2)

    async def test_a_held_record_below_it_is_gone_when_its_lock_ends(self, stage: Stage) -> None:
        await stage.produce(4)
        await stage.member(1).take()
        await stage.lab.delete_records("t", 2)
        await stage.lab.advance(30_000)
        assert await stage.member(2).take() == [(2, 3, 2)]


async def test_read_committed_groups_read_stable_records(stage: Stage) -> None:
    await stage.lab.configure_group(GROUP, isolation_level="read_committed")
    await stage.produce(2)
    assert await stage.member().take() == [(0, 1, 1)]


async def test_records_of_one_fetch_are_settled_by_another_connections_request(stage: Stage) -> None:
    await stage.produce(3)
    member = stage.member()
    await member.take()
    member.client = stage.lab.client()
    pending = member.start_acknowledge([(0, 1, ACCEPT), (2, 2, REJECT)])
    assert acknowledged(await stage.lab.answered(pending)).errors == [0]
    assert await stage.offsets() == (3, 0)
