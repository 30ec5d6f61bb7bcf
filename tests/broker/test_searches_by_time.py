"""Searches by time through a broker: nobody waits for another's."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_spans import INLINE_RECORDS_MAX
from tests.conformance.harness import Lab, open_lab, settle
from tests.conformance.share_member import GROUP, ShareMember, fetched

MANY = INLINE_RECORDS_MAX + 1
MAX_TIMESTAMP = -3


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    async with open_lab() as opened:
        yield opened


def asked(timestamp: int, *partitions: int) -> dict[str, Any]:
    one = {"current_leader_epoch": -1, "timestamp": timestamp}
    topic = {"name": "t", "partitions": [{**one, "partition_index": index} for index in partitions]}
    return {"replica_id": -1, "isolation_level": 0, "topics": [topic]}


@pytest.mark.parametrize("timestamp", [0, MAX_TIMESTAMP])
async def test_others_are_served_while_many_records_are_looked_into(lab: Lab, timestamp: int) -> None:
    topic_id = await lab.create_topic(partition_count=2)
    await lab.produce(topic_id, MANY)
    await lab.produce(topic_id, 1, partition=1)
    with lab.stalled_disk():
        waiting = lab.admin.send("list_offsets", **asked(timestamp, 0))
        other = lab.client("other").send("list_offsets", **asked(timestamp, 1))
        await settle()
        assert (waiting.done, other.done) == (False, True)
    response = await lab.answered(waiting)
    assert [one.offset for one in response.topics[0].partitions] == [0]


async def test_a_log_that_is_closed_meanwhile_is_answered_as_such(lab: Lab) -> None:
    topic_id = await lab.create_topic()
    await lab.produce(topic_id, MANY)
    log = lab.broker.logs.get(lab.broker.metadata.image.topics_by_id[topic_id], 0)
    assert log is not None
    with lab.stalled_disk():
        waiting = lab.admin.send("list_offsets", **asked(0, 0))
        await settle()
        closing = asyncio.create_task(log.close(clean=False))
    response = await lab.answered(waiting)
    assert response.topics[0].partitions[0].error_code is ErrorCode.kafka_storage_error
    await closing


async def test_a_share_group_that_begins_at_a_duration_holds_up_nobody(lab: Lab) -> None:
    topic_id = await lab.create_topic()
    await lab.produce(topic_id, MANY)
    await lab.configure_group(GROUP, auto_offset_reset="by_duration:PT1H")
    member = ShareMember(lab.client(), [TopicIdPartition(topic_id, 0)])
    await member.join("t")
    with lab.stalled_disk():
        fetching = member.start_fetch(max_wait=100)
        other = lab.admin.send("list_offsets", **asked(-1, 0))
        await settle()
        assert (fetching.done, other.done) == (False, True)
    assert fetched(await lab.client().answered(fetching)).acquired == [(0, MANY - 1, 1)]
