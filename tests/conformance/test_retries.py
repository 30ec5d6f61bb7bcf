"""Delays before retries, request by request, with both stores of share state."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import pytest

from barnabas.protocol.client.share_requests import encode_share_acknowledge_request
from barnabas.protocol.decode.acknowledgements import AckBatch, AckPartition, AckTopic
from barnabas.protocol.decode.share_acknowledge import ShareAcknowledgeBody
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.extended.release_delays import MISFIT, ReleaseDelay
from tests.conformance.conftest import Stage
from tests.conformance.harness import Client, settle
from tests.conformance.share_member import ACCEPT, GROUP, RELEASE, ShareMember, acknowledged, fetched

LOCK_MS = 30_000
DELAY_MS = 1_000
WAITING = f"barnabas_share_waiting_records{{group={GROUP},partition=0,topic=t}}"


async def members(stage: Stage, record_count: int = 10, **configs: object) -> tuple[ShareMember, ShareMember]:
    """Two members with open sessions; the first one holds all records. There is no jitter."""
    configs = {"retry_backoff_ms": DELAY_MS, "retry_backoff_jitter": 0, **configs}
    await stage.lab.configure_group(GROUP, **configs)
    one, other = stage.member(1), stage.member(2)
    await other.join("t")
    await one.take()
    await other.take()
    await stage.produce(record_count)
    assert await one.take() == [(0, record_count - 1, 1)]
    return one, other


async def release(member: ShareMember, first_offset: int, last_offset: int) -> None:
    result = await member.acknowledge([(first_offset, last_offset, RELEASE)])
    assert (result.error, result.errors) == (0, [0])


async def end_lock(stage: Stage, _: ShareMember) -> None:
    await stage.lab.advance(LOCK_MS)


async def release_all(_: Stage, member: ShareMember) -> None:
    await release(member, 0, 9)


async def lose_connection(stage: Stage, member: ShareMember) -> None:
    member.client.disconnect()
    await stage.lab.advance(0)


@pytest.mark.parametrize("ending", [release_all, end_lock, lose_connection])
async def test_a_waiting_fetch_gets_a_failed_record_when_it_is_due(
    stage: Stage, ending: Callable[[Stage, ShareMember], Awaitable[None]]
) -> None:
    one, other = await members(stage)
    await ending(stage, one)
    assert stage.lab.broker.metrics.snapshot()[WAITING] == 10
    waiting = other.start_fetch(max_wait=60_000)
    await stage.lab.advance(DELAY_MS - 20)
    assert not waiting.done
    await stage.lab.advance(20 + 10)
    assert fetched(waiting.response()).acquired == [(0, 9, 2)]
    assert stage.lab.broker.metrics.snapshot()[WAITING] == 0


async def test_a_consumer_that_closes_gives_its_records_back_at_once(stage: Stage) -> None:
    one, other = await members(stage)
    await one.leave_session()
    assert await other.take() == [(0, 9, 2)]


async def test_other_records_flow_while_one_waits(stage: Stage) -> None:
    one, other = await members(stage)
    await release(one, 3, 3)
    await stage.produce(5)
    ((first, _, _),) = await other.take()
    assert first > 9
    await stage.lab.advance(DELAY_MS + 10)
    assert await other.take() == [(3, 3, 2)]


@pytest.mark.parametrize("is_clean", [False, True])
async def test_a_due_time_survives_a_restart(stage: Stage, is_clean: bool) -> None:
    """Record 3 waits, record 4 is held by its member, and the broker ends."""
    one, _ = await members(stage)
    await release(one, 3, 3)
    await one.acknowledge([(0, 2, ACCEPT), (5, 9, ACCEPT)])
    await stage.lab.advance(DELAY_MS // 2)
    await stage.restart(is_clean=is_clean)
    later = stage.member(3)
    await later.join("t")
    assert [(first, last) for first, last, _ in await later.take()] == [(4, 4)], (
        "the broker's end is no failure"
    )
    waiting = later.start_fetch(max_wait=60_000)
    await settle()
    await stage.lab.advance(DELAY_MS // 2 - 10)
    assert not waiting.done
    await stage.lab.advance(20)
    assert fetched(waiting.response()).acquired == [(3, 3, 2)]


async def test_a_broker_that_was_down_for_longer_delivers_at_once(stage: Stage) -> None:
    one, _ = await members(stage)
    await release(one, 0, 9)
    await stage.lab.restart(down_ms=DELAY_MS + 10)
    later = stage.member(3)
    await later.join("t")
    assert await later.take() == [(0, 9, 2)]


async def test_the_delay_grows_and_the_delivery_limit_ends_it(stage: Stage) -> None:
    one, other = await members(stage, 1, delivery_count_limit=3)
    await release(one, 0, 0)
    for delay_ms in (DELAY_MS, 2 * DELAY_MS):
        await stage.lab.advance(delay_ms - 10)
        assert await other.take() == []
        await stage.lab.advance(20)
        assert len(await other.take()) == 1
        await release(other, 0, 0)
    assert (await stage.offsets())[1] == 0


async def test_records_that_fill_the_window_stop_the_group_until_they_are_due(stage: Stage) -> None:
    await stage.lab.configure_group(GROUP, partition_max_record_locks=100)
    one, other = await members(stage, 100)
    await release(one, 0, 99)
    await stage.produce(5)
    assert await other.take() == []
    await stage.lab.advance(DELAY_MS + 10)
    assert (await other.take())[0] == (0, 99, 2)


# The delay that a member asks for.


async def ask(member: ShareMember, *delays: ReleaseDelay) -> int:
    """Releases all records with these delays; returns the error of the partition."""
    topic_id, index = member.partitions[0]
    partition = AckPartition(index, [AckBatch(0, 9, (RELEASE,))], delays)
    body = ShareAcknowledgeBody(
        member.group_id, member.member_id, member.epoch, False, [AckTopic(topic_id, [partition])]
    )
    assert isinstance(member.client, Client)
    pending = member.client.send_body("share_acknowledge", 2, encode_share_acknowledge_request(2, body))
    member.epoch += 1
    result = acknowledged(await member.client.answered(pending))
    assert result.error == 0
    return result.errors[0]


async def test_a_member_asks_for_the_delay_of_single_records(stage: Stage) -> None:
    one, other = await members(stage)
    assert await ask(one, ReleaseDelay(0, 4, 0), ReleaseDelay(5, 5, 5_000)) == 0
    assert await other.take() == [(0, 4, 2)]
    await stage.lab.advance(DELAY_MS + 10)
    assert await other.take() == [(6, 9, 2)]
    await stage.lab.advance(4_000)
    assert await other.take() == [(5, 5, 2)]


@pytest.mark.parametrize("delays", [(ReleaseDelay(0, 9, 60_001),), (ReleaseDelay(0, 9, -1),), (MISFIT,)])
async def test_an_invalid_delay_is_refused(stage: Stage, delays: Sequence[ReleaseDelay]) -> None:
    one, other = await members(stage)
    assert await ask(one, *delays) == ErrorCode.invalid_request
    assert await other.take() == []
    await one.accept(0, 9)
