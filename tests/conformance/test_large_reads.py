"""Fetches that read much do not hold up other requests: each pass of the loop reads some megabytes, and the
other fetches wait for the next one.
"""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.records import Record, encode_records
from barnabas.runtime.response_budget import BUDGET_BYTES
from barnabas.storage.log.partition_log import BatchSlice, LogSlice, PartitionLog
from barnabas.storage.reading.reader import Reader
from tests.conformance.conftest import with_log_store_only
from tests.conformance.harness import Client, Lab, Pending, produce_fields
from tests.conformance.share_member import ShareMember, fetched, record_offsets

FETCHES = 5
BATCH_BYTES = 5 * 1024 * 1024
"""More than a pass may read."""


@pytest.fixture
async def topic_id(lab: Lab) -> UUID:
    """A topic with two partitions of one large batch."""
    topic_id = await lab.create_topic(partition_count=2, max__message__bytes=str(2 * BATCH_BYTES))
    for partition in range(2):
        records = encode_records([Record(0, lab.clock.wall_ms(), None, bytes(BATCH_BYTES))])
        response = await lab.admin.ask("produce", **produce_fields(topic_id, partition, records))
        assert response.responses[0].partition_responses[0].error_code is ErrorCode.none
    return topic_id


class Passes:
    """Counts the passes of the loop, and notes in which ones a log is read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.with_reads: list[int] = []
        self._count = 0
        self._loop = asyncio.get_running_loop()
        read = PartitionLog.read
        read_batches = Reader._read_batches  # pyright: ignore[reportPrivateUsage]

        def noted_read(log: PartitionLog, *arguments: Any, **options: Any) -> LogSlice:
            found = read(log, *arguments, **options)
            self._note(bool(found.buffers))
            return found

        def noted_read_batches(reader: Reader, *arguments: Any) -> BatchSlice:
            found = read_batches(reader, *arguments)
            self._note(bool(found.batches))
            return found

        monkeypatch.setattr(PartitionLog, "read", noted_read)
        monkeypatch.setattr(Reader, "_read_batches", noted_read_batches)
        self._begin()

    def _begin(self) -> None:
        self._count += 1
        self._loop.call_soon(self._begin)

    def _note(self, has_read: bool) -> None:
        if has_read:
            self.with_reads.append(self._count)


def fetch(client: Client, topic_id: UUID, *partitions: int) -> Pending:
    wanted = [
        {"partition": partition, "fetch_offset": 0, "partition_max_bytes": 2 * BATCH_BYTES}
        for partition in partitions
    ]
    topic = {"topic_id": topic_id, "partitions": wanted}
    return client.send("fetch", max_bytes=1 << 30, topics=[topic])


def offsets(response: Any) -> list[list[int]]:
    """The offsets of each partition."""
    partitions = response.responses[0].partitions
    assert {partition.error_code for partition in partitions} == {ErrorCode.none}
    return [record_offsets(partition.records or b"") for partition in partitions]


@with_log_store_only
@pytest.mark.interpreted
async def test_each_pass_has_one_large_read_of_ordinary_fetches(
    lab: Lab, topic_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes = Passes(monkeypatch)
    pending = [fetch(lab.client(), topic_id, 0) for _ in range(FETCHES)]
    for answer in pending:
        assert offsets(await lab.answered(answer)) == [[0]]
    assert len(passes.with_reads) == len(set(passes.with_reads)) == FETCHES


@pytest.mark.interpreted
async def test_each_pass_has_one_large_read_of_share_groups(
    lab: Lab, topic_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    members: list[ShareMember] = []
    for number in range(FETCHES):
        group_id = f"group-{number}"
        await lab.configure_group(group_id, auto_offset_reset="earliest")
        member = ShareMember(lab.client(), [TopicIdPartition(topic_id, 0)], group_id=group_id)
        await member.join("t")
        members.append(member)
    passes = Passes(monkeypatch)
    pending = [member.start_fetch(max_wait=1_000, max_bytes=1 << 30) for member in members]
    for answer in pending:
        assert fetched(await lab.answered(answer)).acquired == [(0, 0, 1)]
    assert len(passes.with_reads) == len(set(passes.with_reads)) == FETCHES


@with_log_store_only
async def test_a_topic_that_is_deleted_while_a_fetch_waits_for_its_next_read_is_reported(
    lab: Lab, topic_id: UUID
) -> None:
    pending = fetch(lab.client(), topic_id, 0, 1)
    deleting = lab.admin.send("delete_topics", topics=[{"name": "t"}])
    assert (await lab.answered(deleting)).responses[0].error_code is ErrorCode.none
    first, second = (await lab.answered(pending)).responses[0].partitions
    assert (first.error_code, record_offsets(first.records)) == (ErrorCode.none, [0])
    assert second.error_code in (ErrorCode.none, ErrorCode.unknown_topic_id)


@with_log_store_only
async def test_a_fetch_that_has_waited_uses_the_memory_that_is_left_then(lab: Lab, topic_id: UUID) -> None:
    budget = lab.broker.response_budget
    pending = [fetch(lab.client(), topic_id, 0) for _ in range(2)]
    taken = budget.take(BUDGET_BYTES)
    assert offsets(await lab.answered(pending[0])) == [[0]]
    assert offsets(await lab.answered(pending[1])) == [[]]
    budget.give_back(taken)
