"""Large requests leave turns to others, and are answered as small ones are."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.conformance.harness import Lab, Pending, open_lab

MISSING = UUID(int=7)
COUNT = 6_000


async def _passes_until(lab: Lab, pending: Pending) -> tuple[int, Any]:
    """How many small requests of another client were answered before the large one, and its answer."""
    other, passes = lab.client(), 0
    while not pending.done:
        assert other.send("api_versions", 0).done
        passes += 1
        await asyncio.sleep(0)
    return passes, pending.response()


async def test_topics_are_created_part_by_part() -> None:
    topics = [
        {"name": f"topic-{number:04}", "num_partitions": 1, "replication_factor": 1}
        for number in range(2_000)
    ]
    async with open_lab() as lab:
        pending = lab.client().send("create_topics", topics=topics)
        passes, response = await _passes_until(lab, pending)
        assert passes >= len(topics) / 50
        assert [topic.name for topic in response.topics] == [topic["name"] for topic in topics]
        assert {topic.error_code for topic in response.topics} == {ErrorCode.none}
        assert len(lab.broker.metadata.image.topics_by_name) == len(topics)


async def test_a_name_given_twice_is_refused_wherever_it_stands() -> None:
    names = ["twice", *(f"topic-{number:04}" for number in range(2_000)), "twice"]
    topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names]
    async with open_lab() as lab:
        _, response = await _passes_until(lab, lab.client().send("create_topics", topics=topics))
        refused = [topic.name for topic in response.topics if topic.error_code is not ErrorCode.none]
        assert refused == ["twice"]


@pytest.mark.parametrize("session_epoch", [-1, 0])
async def test_partitions_are_fetched_in_turns(session_epoch: int) -> None:
    partitions = [{"partition": index, "fetch_offset": 0, "partition_max_bytes": 1} for index in range(COUNT)]
    topics = [{"topic_id": MISSING, "partitions": partitions}]
    async with open_lab() as lab:
        pending = lab.client().send("fetch", topics=topics, max_wait=0, session_epoch=session_epoch)
        passes, response = await _passes_until(lab, pending)
        assert passes > 10
        (topic,) = response.responses
        assert [one.partition_index for one in topic.partitions] == [*range(COUNT)]
        assert {one.error_code for one in topic.partitions} == {ErrorCode.unknown_topic_id}
        assert (response.session_id != 0) == (session_epoch == 0)


async def test_share_partitions_are_fetched_in_turns() -> None:
    partitions = [{"partition_index": index, "acknowledgement_batches": []} for index in range(COUNT)]
    topics = [{"topic_id": MISSING, "partitions": partitions}]
    async with open_lab() as lab:
        pending = lab.client().send(
            "share_fetch",
            group_id="group",
            member_id="member",
            share_session_epoch=0,
            max_records=1,
            topics=topics,
        )
        passes, response = await _passes_until(lab, pending)
        assert passes > 10
        (topic,) = response.responses
        assert [one.partition_index for one in topic.partitions] == [*range(COUNT)]
        assert {one.error_code for one in topic.partitions} == {ErrorCode.unknown_topic_id}


async def test_a_member_may_not_subscribe_to_far_more_topics_than_there_are() -> None:
    async with open_lab() as lab:
        for count, error in (5_000, ErrorCode.none), (5_100, ErrorCode.invalid_request):
            pending = lab.client().send(
                "share_group_heartbeat",
                group_id=f"group-{count}",
                member_id="member",
                member_epoch=0,
                subscribed_topic_names=[f"missing-{number}" for number in range(count)],
            )
            _, response = await _passes_until(lab, pending)
            assert response.error_code is error
