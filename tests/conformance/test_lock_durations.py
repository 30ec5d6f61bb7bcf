"""Durations of locks that a member asks for (docs/protocol.md, tag 10000 of ShareFetch)."""

from __future__ import annotations

import pytest

from barnabas.protocol.client.share_requests import encode_share_fetch_request
from barnabas.protocol.decode.acknowledgements import AckPartition, AckTopic
from barnabas.protocol.decode.share_fetch import ShareFetchBody
from barnabas.protocol.errors import ErrorCode
from tests.conformance.conftest import Stage
from tests.conformance.share_member import ACCEPT, GROUP, RENEW, Fetched, ShareMember, fetched

GROUP_MS = 30_000
GREATEST_MS = 60_000
"""The broker's default of group.share.max.record.lock.duration.ms."""


async def fetch(stage: Stage, member: ShareMember, lock_duration_ms: int | None) -> Fetched:
    """The member's next fetch over a connection of its own, with the tag unless it is None."""
    names = [AckPartition(one.partition, []) for one in member.partitions if not member.epoch]
    body = ShareFetchBody(
        *(GROUP, member.member_id, member.epoch, 0, 1, 1 << 20, 500, 500, 0, False),
        topics=[AckTopic(stage.partition.topic_id, names)] if names else [],
        forgotten_topics=[],
        lock_duration_ms=lock_duration_ms,
    )
    client = stage.lab.client()
    got = fetched(
        await client.answered(client.send_body("share_fetch", 2, encode_share_fetch_request(2, body)))
    )
    if not got.error:
        member.epoch += 1
    return got


@pytest.mark.parametrize("duration_ms", [1_000, 45_000, GREATEST_MS])
async def test_a_member_locks_records_for_the_time_that_it_asks_for(stage: Stage, duration_ms: int) -> None:
    await stage.produce(2)
    got = await fetch(stage, stage.member(), duration_ms)
    assert (got.lock_ms, got.acquired) == (duration_ms, [(0, 1, 1)])
    await stage.lab.advance(duration_ms - 1)
    assert await stage.member(2).take() == []
    await stage.lab.advance(1)
    assert await stage.member(3).take() == [(0, 1, 2)]


async def test_the_session_keeps_the_duration_until_a_fetch_changes_it(stage: Stage) -> None:
    member = stage.member()
    assert (await fetch(stage, member, 5_000)).lock_ms == 5_000
    await stage.produce(1)
    assert (await fetch(stage, member, None)).lock_ms == 5_000
    await stage.lab.advance(5_000)
    assert await stage.member(2).take() == [(0, 0, 2)]
    assert (await fetch(stage, member, 7_000)).lock_ms == 7_000
    assert (await member.acknowledge(())).lock_ms == 7_000


async def test_members_of_one_group_may_have_different_durations(stage: Stage) -> None:
    await stage.produce(1)
    short, plain = stage.member(), stage.member(2)
    await fetch(stage, short, 2_000)
    await stage.produce(1)
    assert (await plain.fetch()).lock_ms == GROUP_MS
    await stage.lab.advance(2_000)
    assert await stage.member(3).take() == [(0, 0, 2)]
    await plain.accept(1, 1)


async def test_a_new_session_without_a_duration_has_the_groups(stage: Stage) -> None:
    member = stage.member()
    await fetch(stage, member, 5_000)
    member.epoch = 0
    assert (await fetch(stage, member, None)).lock_ms == GROUP_MS


@pytest.mark.parametrize("by_fetch", [True, False])
async def test_a_renewed_lock_has_the_members_duration(stage: Stage, by_fetch: bool) -> None:
    await stage.produce(2)
    member = stage.member()
    await fetch(stage, member, 10_000)
    await stage.lab.advance(6_000)
    if by_fetch:
        nothing = {"max_bytes": 0, "min_bytes": 0, "max_records": 0, "is_renew_ack": True}
        renewed = await member.fetch([(0, 0, RENEW)], **nothing)
        assert (renewed.lock_ms, renewed.acknowledge_errors) == (10_000, [0])
    else:
        answer = await member.acknowledge([(0, 0, RENEW)], renew=True)
        assert (answer.lock_ms, answer.errors) == (10_000, [0])
    await stage.lab.advance(9_999)
    assert await stage.member(2).take() == [(1, 1, 2)]
    await stage.lab.advance(1)
    assert await stage.member(3).take() == [(0, 0, 2)]


@pytest.mark.parametrize("duration_ms", [999, 0, -1, GREATEST_MS + 1])
async def test_a_duration_out_of_bounds_is_refused_and_changes_nothing(
    stage: Stage, duration_ms: int
) -> None:
    await stage.produce(1)
    member = stage.member()
    await fetch(stage, member, 5_000)
    refused = await fetch(stage, member, duration_ms)
    assert (refused.error, refused.partitions) == (ErrorCode.invalid_request, {})
    assert (await member.acknowledge([(0, 0, ACCEPT)])).lock_ms == 5_000, "the epoch is not used up"


async def test_the_refusal_names_the_bounds_and_their_setting(stage: Stage) -> None:
    body = ShareFetchBody(GROUP, "m", 0, 0, 1, 1, 1, 1, 0, False, [], [], lock_duration_ms=600_000)
    pending = stage.lab.client().send_body("share_fetch", 2, encode_share_fetch_request(2, body))
    assert (await stage.lab.answered(pending)).error_message == (
        "The duration of locks is 600000 ms. It must be from 1000 ms to 60000 ms, the broker's "
        "group.share.max.record.lock.duration.ms."
    )
