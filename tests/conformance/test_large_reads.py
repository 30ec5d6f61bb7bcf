"""Fetches that read much do not hold up other requests: an ordinary fetch reads in a thread, and each pass of
the loop has one large read of a share group.
"""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.records import Record, encode_records
from barnabas.runtime.turns import LONG_READ_BYTES
from barnabas.storage.log.partition_log import BatchSlice, PartitionLog
from tests.conformance.conftest import with_log_store_only
from tests.conformance.harness import Client, Lab, Pending, produce_fields
from tests.conformance.share_member import ShareMember, fetched, record_offsets

FETCHES = 5
BATCH_BYTES = LONG_READ_BYTES + 1


@pytest.fixture
async def topic_id(lab: Lab) -> UUID:
    """A topic with one large batch."""
    topic_id = await lab.create_topic(max__message__bytes=str(2 * BATCH_BYTES))
    records = encode_records([Record(0, lab.clock.wall_ms(), None, bytes(BATCH_BYTES))])
    response = await lab.admin.ask("produce", **produce_fields(topic_id, 0, records))
    assert response.responses[0].partition_responses[0].error_code is ErrorCode.none
    return topic_id


def fetch(client: Client, topic_id: UUID) -> Pending:
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 10 * BATCH_BYTES}
    topic = {"topic_id": topic_id, "partitions": [partition]}
    return client.send("fetch", max_bytes=10 * BATCH_BYTES, topics=[topic])


def offsets(response: Any) -> list[int]:
    [partition] = response.responses[0].partitions
    assert partition.error_code is ErrorCode.none
    return record_offsets(partition.records)


@with_log_store_only
async def test_others_are_served_while_a_fetch_reads_much(lab: Lab, topic_id: UUID) -> None:
    with lab.stalled_disk():
        pending = fetch(lab.client(), topic_id)
        await lab.client().ask("metadata", topics=())
        assert not pending.done
    assert offsets(await lab.answered(pending)) == [0]


@with_log_store_only
async def test_a_read_in_a_thread_counts_from_its_beginning(lab: Lab, topic_id: UUID) -> None:
    """Else fetches that arrive together would exceed the memory for responses."""
    with lab.stalled_disk():
        pending = [fetch(lab.client(), topic_id) for _ in range(FETCHES)]
        assert lab.broker.response_budget.taken_bytes >= FETCHES * BATCH_BYTES
    for answer in pending:
        assert offsets(await lab.answered(answer)) == [0]


@with_log_store_only
async def test_a_log_may_be_deleted_while_a_thread_reads_it(lab: Lab, topic_id: UUID) -> None:
    with lab.stalled_disk():
        pending = fetch(lab.client(), topic_id)
        deleting = lab.admin.send("delete_topics", topics=[{"name": "t"}])
    assert offsets(await lab.answered(pending)) == [0]
    assert (await lab.answered(deleting)).responses[0].error_code is ErrorCode.none


async def test_each_pass_of_the_loop_has_one_large_read_of_share_groups(
    lab: Lab, topic_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, passes, read_in = asyncio.get_running_loop(), [0], list[int]()
    read_batches = PartitionLog.read_batches

    def count_pass() -> None:
        passes[0] += 1
        loop.call_soon(count_pass)

    def read(log: PartitionLog, *arguments: Any, **options: Any) -> BatchSlice:
        found = read_batches(log, *arguments, **options)
        if found.batches:
            read_in.append(passes[0])
        return found

    members: list[ShareMember] = []
    for number in range(FETCHES):
        group_id = f"group-{number}"
        await lab.configure_group(group_id, auto_offset_reset="earliest")
        member = ShareMember(lab.client(), [TopicIdPartition(topic_id, 0)], group_id=group_id)
        await member.join("t")
        members.append(member)
    count_pass()
    monkeypatch.setattr(PartitionLog, "read_batches", read)
    pending = [member.start_fetch(max_wait=1_000, max_bytes=1 << 30) for member in members]
    for answer in pending:
        assert fetched(await lab.answered(answer)).acquired == [(0, 0, 1)]
    assert len(read_in) == len(set(read_in)) == FETCHES
