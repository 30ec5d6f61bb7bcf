"""Searches by time through a broker: no request waits for another one's search."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from barnabas.protocol.batch_body import SMALL_RECORDS_MAX
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.runtime.stepwise import StepwiseWork
from barnabas.storage.errors import StorageError
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.reading.offset_lookup import TimedOffset
from tests.conformance.harness import Lab, open_lab, settle
from tests.conformance.share_member import GROUP, Fetched, ShareMember, fetched

MANY = SMALL_RECORDS_MAX + 1
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
async def test_others_are_served_while_many_records_are_searched(lab: Lab, timestamp: int) -> None:
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


async def test_a_log_closed_during_the_search_is_an_error(lab: Lab) -> None:
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


async def test_a_share_group_that_starts_by_duration_delays_no_other_request(lab: Lab) -> None:
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


async def test_a_result_is_not_reused_for_a_new_topic_with_the_same_name(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic_id = await lab.create_topic(partition_count=2)
    for partition in (0, 1):
        await lab.produce(topic_id, 1, partition=partition)
    search, may_go_on = PartitionLog.offset_for_timestamp, asyncio.Event()

    async def search_slowly(log: PartitionLog, timestamp_ms: int, work: StepwiseWork) -> TimedOffset | None:
        found = await search(log, timestamp_ms, work)
        if log.topic_partition.partition == 1:
            await may_go_on.wait()
        return found

    monkeypatch.setattr(PartitionLog, "offset_for_timestamp", search_slowly)
    waiting = lab.admin.send("list_offsets", **asked(0, 0, 1))
    await settle()
    assert not waiting.done
    await lab.delete_topic("t")
    await lab.create_topic(partition_count=2)
    may_go_on.set()
    response = await lab.answered(waiting)
    codes = [one.error_code for one in response.topics[0].partitions]
    assert set(codes) <= {ErrorCode.not_leader_or_follower, ErrorCode.kafka_storage_error}


async def test_a_failed_search_is_repeated(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    topic_id = await lab.create_topic()
    await lab.produce(topic_id, 1)
    await lab.configure_group(GROUP, auto_offset_reset="by_duration:PT1H")
    member = ShareMember(lab.client(), [TopicIdPartition(topic_id, 0)])
    await member.join("t")

    async def fail(*_: object) -> None:
        raise StorageError("no descriptor is left")

    async def fetches(*epochs: int) -> list[Fetched]:
        answers: list[Fetched] = []
        for epoch in epochs:
            answers.append(await member.fetch(epoch=epoch, max_wait=0))
            await settle()
        return answers

    with monkeypatch.context() as patch:
        patch.setattr(PartitionLog, "offset_for_timestamp", fail)
        failed = await fetches(0, 1, 2)
    assert not any(one.acquired for one in failed)
    assert [(0, 0, 1)] in [one.acquired for one in await fetches(3, 4, 5)]
