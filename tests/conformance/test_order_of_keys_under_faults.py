"""Share groups with `share.order=key` while writes are slow or fail; leaders, topics and records that go."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.share.leader.idle_leaders import LOOK_INTERVAL_MS
from tests.conformance.conftest import Stage, make_stage, with_topic_store_only
from tests.conformance.harness import Lab, open_lab, settle
from tests.conformance.share_member import ACCEPT, RELEASE, acknowledged, fetched
from tests.conformance.test_order_of_keys import from_base, members, produce, taken

LOCK_MS = 30_000


@pytest.fixture
async def synced(share_state_store: str) -> AsyncIterator[Stage]:
    """A broker that syncs each write."""
    async with open_lab(log__flush="always") as lab:
        yield await make_stage(lab)


def state_log(lab: Lab, stage: Stage) -> str:
    return lab.state_directory("group", stage.partition)


@pytest.mark.parametrize("event", ["nothing", "the lock's time passes", "the session ends"])
async def test_a_key_is_held_until_its_acknowledgement_is_recorded(synced: Stage, event: str) -> None:
    one, other = await members(synced)
    (base,) = await produce(synced, ["a", "a"])
    assert from_base(await taken(one, max_wait=LOCK_MS), base) == [0]
    waiting = other.start_fetch(max_wait=10 * LOCK_MS)
    with synced.lab.stalled_disk():
        pending = one.start_acknowledge([(base, base, ACCEPT)])
        await settle()
        if event == "the lock's time passes":
            await synced.lab.advance(LOCK_MS)
        elif event == "the session ends":
            one.client.disconnect()
            await settle()
        assert not waiting.done
    acquired = fetched(await synced.lab.answered(waiting)).acquired
    assert acquired == [(base + 1, base + 1, 1)]
    if event != "the session ends":
        assert acknowledged(await synced.lab.answered(pending)).errors == [0]


@with_topic_store_only
async def test_a_release_that_cannot_be_recorded_changes_nothing(stage: Stage) -> None:
    one, other = await members(stage)
    (base,) = await produce(stage, ["a", "a"])
    assert from_base(await taken(one), base) == [0]
    with stage.lab.broken_disk(state_log(stage.lab, stage)):
        result = await one.acknowledge([(base, base, RELEASE)])
        assert result.errors != [0]
        assert await taken(other) == []
    await stage.lab.advance(LOCK_MS)
    assert from_base(await taken(other), base) == [0]


@with_topic_store_only
async def test_an_expiry_that_cannot_be_recorded_keeps_the_order(stage: Stage) -> None:
    one, other = await members(stage)
    (base,) = await produce(stage, ["a", "a", "b"])
    assert from_base(await taken(one), base) == [0, 2]
    with stage.lab.broken_disk(state_log(stage.lab, stage)):
        await stage.lab.advance(LOCK_MS)
    assert from_base(await taken(other), base) == [0, 2]


async def test_records_deleted_up_to_the_middle_of_a_batch_free_their_keys(stage: Stage) -> None:
    one, other = await members(stage)
    (base,) = await produce(stage, ["a", "b", "a", "b", "a"])
    assert from_base(await taken(one), base) == [0, 1]
    waiting = other.start_fetch(max_wait=LOCK_MS)
    await stage.lab.delete_records("t", base + 1)
    assert fetched(await stage.lab.answered(waiting)).acquired == [(base + 2, base + 2, 1)]
    await stage.lab.delete_records("t", base + 4)
    assert from_base(await taken(other), base) == [4]


async def test_a_batch_larger_than_the_fetch_keeps_the_order(stage: Stage) -> None:
    one, other = await members(stage)
    (base, _) = await produce(stage, ["a", "b", "a"] * 20, ["c"])
    assert from_base(await taken(one, max_bytes=1), base) == [0, 1]
    assert await taken(other, max_bytes=1) == [base + 60]
    await one.accept(base, base)
    assert from_base(await taken(other, max_bytes=1), base) == [2]


async def test_a_leader_that_was_dropped_begins_again_with_the_first_unfinished_records(
    stage: Stage,
) -> None:
    one, other = await members(stage)
    (base,) = await produce(stage, ["a", "b", "a", "b"])
    await taken(one)
    await one.acknowledge([(base, base, RELEASE), (base + 1, base + 1, ACCEPT)])
    await stage.lab.advance(3 * LOOK_INTERVAL_MS)
    assert list(stage.lab.broker.share_partitions) == []
    assert from_base(await taken(other), base) == [0, 3]


async def test_a_fetch_that_waits_for_its_key_is_answered_when_the_topic_is_deleted(stage: Stage) -> None:
    one, other = await members(stage)
    (base,) = await produce(stage, ["a", "a"])
    assert from_base(await taken(one), base) == [0]
    waiting = other.start_fetch(max_wait=LOCK_MS)
    await settle()
    assert not waiting.done
    await stage.lab.delete_topic("t")
    assert fetched(await stage.lab.answered(waiting)).errors == [ErrorCode.unknown_topic_id]
