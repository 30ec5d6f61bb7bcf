"""Fetches of many partitions take turns. Events between the turns leave nothing behind and make nothing
stale.
"""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from tests.conformance.harness import Client, Lab, Pending, batch, open_lab, produce_fields, settle
from tests.conformance.share_member import GROUP, ShareMember

MISSING = UUID(int=7)
TURNS_COUNT = 900
"""The number of partitions that need more than one turn, as do their answers."""
PARTS_COUNT = 1_200
"""The number of partitions that are read in a thread before they are handled."""
BATCH_BYTES = 100_000


def _fetched(topic_id: UUID, count: int) -> dict[str, Any]:
    partitions = [
        {"partition": index, "fetch_offset": 0, "partition_max_bytes": 1 << 20} for index in range(count)
    ]
    return {"topic_id": topic_id, "partitions": partitions}


def _shared(topic_id: UUID, count: int) -> dict[str, Any]:
    partitions: list[dict[str, Any]] = [
        {"partition_index": index, "acknowledgement_batches": []} for index in range(count)
    ]
    return {"topic_id": topic_id, "partitions": partitions}


def _share_fetch(client: Client, epoch: int, *topics: dict[str, Any], max_wait: int = 0) -> Pending:
    return client.send(
        "share_fetch",
        group_id=GROUP,
        member_id="member-1",
        share_session_epoch=epoch,
        max_wait=max_wait,
        min_bytes=1,
        max_bytes=1 << 20,
        max_records=5_000,
        batch_size=500,
        topics=list(topics),
    )


async def _member(lab: Lab, topic_id: UUID, partition_count: int) -> Client:
    """The client of a member that has all partitions."""
    await lab.configure_group(GROUP, auto_offset_reset="earliest")
    client = lab.client()
    partitions = [TopicIdPartition(topic_id, index) for index in range(partition_count)]
    await ShareMember(client, partitions).join("t")
    return client


async def _end_of_work(lab: Lab) -> None:
    """Waits until the thread has no work left, and its results are handled."""
    await lab.broker.long_work.run(int)
    await settle()


async def test_a_share_fetch_whose_client_leaves_while_it_is_encoded_releases_its_budget() -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic("t")
        client = await _member(lab, topic_id, 1)
        await lab.answered(_share_fetch(client, 0, _shared(topic_id, 1)))
        await lab.produce(topic_id, 10)
        budget = lab.broker.response_budget
        pending = _share_fetch(client, 1, _shared(MISSING, TURNS_COUNT))
        while not budget.taken_bytes:
            assert not pending.done
            await asyncio.sleep(0)
        pending.reply.withdraw()  # type: ignore[attr-defined]
        client.disconnect()
        await _end_of_work(lab)
        assert budget.taken_bytes == 0


async def test_a_share_fetch_whose_client_left_before_it_began_opens_no_session() -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic("t")
        client = await _member(lab, topic_id, 1)
        pending = _share_fetch(client, 0, _shared(MISSING, PARTS_COUNT))
        pending.reply.withdraw()  # type: ignore[attr-defined]
        client.disconnect()
        await _end_of_work(lab)
        assert len(lab.broker.share_sessions) == 0


@pytest.mark.parametrize("partition_count", [20, 60])
async def test_a_share_fetch_that_is_answered_waits_no_longer(partition_count: int) -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic("t", partition_count)
        client = await _member(lab, topic_id, partition_count)
        await lab.answered(_share_fetch(client, 0, _shared(topic_id, partition_count)))
        for index in range(partition_count):
            await lab.produce(topic_id, 1, partition=index)
        response = await lab.answered(_share_fetch(client, 1, max_wait=60_000))
        (topic,) = response.responses
        assert len(topic.partitions) == partition_count
        await settle()
        assert len(lab.broker.purgatory) == 0


async def test_a_response_that_waits_to_be_encoded_counts_against_the_budget() -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic("t")
        records = batch(1, lab.clock.wall_ms(), BATCH_BYTES)
        await lab.admin.ask("produce", **produce_fields(topic_id, 0, records))
        budget = lab.broker.response_budget
        asked: dict[str, Any] = {"max_wait": 0, "min_bytes": 1, "max_bytes": 1 << 20, "session_epoch": -1}
        topics = [_fetched(topic_id, 1), _fetched(MISSING, TURNS_COUNT)]
        fetching = [lab.client().send("fetch", topics=topics, **asked) for _ in range(3)]
        for _ in range(1_000):
            if budget.taken_bytes >= 3 * BATCH_BYTES:
                break
            await asyncio.sleep(0)
        assert not any(one.done for one in fetching), "they are being encoded"
        withdrawn, *answered = fetching
        withdrawn.reply.withdraw()  # type: ignore[attr-defined]
        for one in answered:
            await lab.answered(one)
        assert 2 * BATCH_BYTES <= budget.taken_bytes < 3 * BATCH_BYTES


async def test_a_topic_that_is_deleted_between_two_turns_is_unknown() -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic("t")
        await lab.produce(topic_id, 1)
        asked: dict[str, Any] = {"max_wait": 0, "min_bytes": 1, "max_bytes": 1 << 20, "session_epoch": -1}
        topics = [_fetched(topic_id, 1), _fetched(MISSING, 5_000)]
        pending = lab.client().send("fetch", topics=topics, **asked)
        await lab.broker.long_work.run(int)
        await lab.admin.ask("delete_topics", topics=[{"name": "t", "topic_id": None}])
        response = await lab.answered(pending)
        found = {one.topic_id: one.partitions[0].error_code for one in response.responses}
        assert found[topic_id] is ErrorCode.unknown_topic_id
