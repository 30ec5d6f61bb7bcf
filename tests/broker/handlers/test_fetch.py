"""Fetch: errors, limits, waits, and share state that no consumer sees."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Literal, NamedTuple
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.conformance.conftest import Stage, make_stage
from tests.conformance.harness import Lab, Pending, batch, open_lab, settle
from tests.conformance.share_member import record_offsets

SIZE = len(batch(1, 0))


def tell(pending: Pending, method_name: Literal["hurry", "withdraw"]) -> None:
    """The events that a connection passes to a waiting reply."""
    getattr(pending.reply, method_name)()


class Read(NamedTuple):
    """The result of one partition."""

    error: ErrorCode
    high_watermark: int
    log_start_offset: int
    offsets: list[int]


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    async with open_lab() as lab:
        yield lab


def start_fetch(
    lab: Lab,
    *wanted: tuple[UUID, int, int],
    version: int = 18,
    partition_max_bytes: int = 1 << 20,
    current_leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
    **fields: Any,
) -> Pending:
    """Fetches (topic id, partition, offset) triples."""
    topics = [
        {
            "topic_id": topic_id,
            "topic": "t",
            "partitions": [
                {
                    "partition": partition,
                    "fetch_offset": offset,
                    "partition_max_bytes": partition_max_bytes,
                    "current_leader_epoch": current_leader_epoch,
                    "last_fetched_epoch": last_fetched_epoch,
                }
            ],
        }
        for topic_id, partition, offset in wanted
    ]
    asked = {"min_bytes": 1, "max_bytes": 1 << 20, "session_epoch": -1, **fields}
    return lab.admin.send("fetch", version, topics=topics, **asked)


def reads(response: Any) -> list[Read]:
    return [
        Read(
            one.error_code,
            one.high_watermark,
            getattr(one, "log_start_offset", -1),
            record_offsets(one.records),
        )
        for topic in response.responses
        for one in topic.partitions
    ]


async def fetch(lab: Lab, *wanted: tuple[UUID, int, int], **fields: Any) -> list[Read]:
    return reads(await lab.answered(start_fetch(lab, *wanted, **fields)))


async def test_a_fetch_reads_whole_batches_from_its_offset_on(lab: Lab) -> None:
    topic_id = await lab.create_topic()
    await lab.produce(topic_id, 2, 2)
    assert await fetch(lab, (topic_id, 0, 2)) == [(ErrorCode.none, 4, 0, [2, 3])]
    (inside,) = await fetch(lab, (topic_id, 0, 3))
    assert inside.offsets == [2, 3], "whole batches"
    assert await fetch(lab, (topic_id, 0, 4)) == [(ErrorCode.none, 4, 0, [])]


@pytest.mark.parametrize("version", range(4, 19))
async def test_every_version_is_answered(lab: Lab, version: int) -> None:
    topic_id = await lab.create_topic()
    await lab.produce(topic_id, 2)
    (read,) = await fetch(lab, (topic_id, 0, 0), version=version)
    assert (read.error, read.high_watermark, read.offsets) == (ErrorCode.none, 2, [0, 1])


@pytest.mark.parametrize(
    ("partition", "offset", "leader_epoch", "error"),
    [
        (0, 5, -1, ErrorCode.offset_out_of_range),
        (0, 0, -1, ErrorCode.offset_out_of_range),
        (1, 0, -1, ErrorCode.unknown_topic_or_partition),
        (-1, 0, -1, ErrorCode.unknown_topic_or_partition),
        (0, 2, 0, ErrorCode.none),
        (0, 2, 7, ErrorCode.unknown_leader_epoch),
    ],
)
async def test_a_partition_that_cannot_be_read_has_its_error(
    lab: Lab, partition: int, offset: int, leader_epoch: int, error: ErrorCode
) -> None:
    topic_id = await lab.create_topic()
    await lab.produce(topic_id, 4)
    await lab.delete_records("t", 1)
    (read,) = await fetch(
        lab, (topic_id, partition, offset), current_leader_epoch=leader_epoch, max_wait=1000
    )
    assert read.error is error


async def test_an_old_leader_epoch_is_fenced(lab: Lab) -> None:
    topic_id = await lab.create_topic()
    await lab.restart()
    (read,) = await fetch(lab, (topic_id, 0, 0), current_leader_epoch=0)
    assert read.error is ErrorCode.fenced_leader_epoch


async def test_an_unknown_topic_is_an_error(lab: Lab) -> None:
    (by_id,) = await fetch(lab, (UUID(int=1), 0, 0))
    (by_name,) = await fetch(lab, (UUID(int=1), 0, 0), version=12)
    assert (by_id.error, by_name.error) == (
        ErrorCode.unknown_topic_id,
        ErrorCode.unknown_topic_or_partition,
    )


async def test_a_log_that_is_offline_is_a_storage_error(lab: Lab) -> None:
    topic_id = await lab.create_topic()
    await lab.produce(topic_id, 1)
    with lab.broken_disk("t-0"), pytest.raises(AssertionError):
        await lab.produce(topic_id, 1)
    (read,) = await fetch(lab, (topic_id, 0, 0), max_wait=1000)
    assert read.error is ErrorCode.kafka_storage_error


@pytest.mark.parametrize(
    ("fetch_offset", "last_fetched_epoch", "error", "diverging"),
    [
        (2, 0, ErrorCode.none, (-1, -1)),
        (3, 0, ErrorCode.none, (0, 2)),
        (4, 1, ErrorCode.none, (-1, -1)),
        (2, 7, ErrorCode.offset_out_of_range, (-1, -1)),
    ],
)
async def test_a_client_learns_where_its_log_diverges(
    lab: Lab, fetch_offset: int, last_fetched_epoch: int, error: ErrorCode, diverging: tuple[int, int]
) -> None:
    topic_id = await lab.create_topic()
    await lab.produce(topic_id, 2)
    await lab.restart()
    await lab.produce(topic_id, 2)
    response = await lab.answered(
        start_fetch(lab, (topic_id, 0, fetch_offset), last_fetched_epoch=last_fetched_epoch)
    )
    partition = response.responses[0].partitions[0]
    found = partition.diverging_epoch
    assert (partition.error_code, (found.epoch, found.end_offset)) == (error, diverging)
    assert bool(partition.records) is (error is ErrorCode.none and diverging == (-1, -1) and fetch_offset < 4)


async def test_the_response_to_a_fenced_client_names_the_leader(lab: Lab) -> None:
    topic_id = await lab.create_topic()
    await lab.restart()
    response = await lab.answered(start_fetch(lab, (topic_id, 0, 0), current_leader_epoch=0))
    leader = response.responses[0].partitions[0].current_leader
    assert (leader.leader_id, leader.leader_epoch) == (1, 1)
    assert [(one.node_id, one.host, one.port) for one in response.node_endpoints] == [
        (1, "broker.example", 19092)
    ]


async def test_partitions_that_do_not_exist_come_last_and_end_no_wait(lab: Lab) -> None:
    topic_id = await lab.create_topic()
    pending = start_fetch(lab, (topic_id, 5, 0), (topic_id, 0, 0), max_wait=500)
    await settle()
    assert not pending.done
    await lab.produce(topic_id, 1)
    assert reads(pending.response()) == [
        (ErrorCode.none, 1, 0, [0]),
        (ErrorCode.unknown_topic_or_partition, -1, -1, []),
    ]


class TestLimits:
    async def test_the_first_batch_is_returned_beyond_every_limit(self, lab: Lab) -> None:
        topic_id = await lab.create_topic()
        await lab.produce(topic_id, 3, 3)
        (read,) = await fetch(lab, (topic_id, 0, 0), max_bytes=1, partition_max_bytes=1)
        assert read.offsets == [0, 1, 2]

    async def test_the_limit_of_a_partition_bounds_its_records(self, lab: Lab) -> None:
        topic_id = await lab.create_topic()
        await lab.produce(topic_id, 1, 1, 1)
        (read,) = await fetch(lab, (topic_id, 0, 0), partition_max_bytes=2 * SIZE)
        assert read.offsets == [0, 1]

    async def test_the_limit_of_the_request_bounds_all_partitions(self, lab: Lab) -> None:
        topic_id = await lab.create_topic("t", 3)
        for partition in range(3):
            await lab.produce(topic_id, 1, 1, partition=partition)
        got = await fetch(lab, *[(topic_id, index, 0) for index in range(3)], max_bytes=3 * SIZE)
        assert [len(read.offsets) for read in got] == [2, 1, 0]


class TestWaiting:
    async def test_ends_at_max_wait(self, lab: Lab) -> None:
        topic_id = await lab.create_topic()
        pending = start_fetch(lab, (topic_id, 0, 0), max_wait=500)
        await lab.advance(499)
        assert not pending.done
        await lab.advance(1)
        assert reads(pending.response()) == [(ErrorCode.none, 0, 0, [])]

    async def test_is_not_done_without_max_wait(self, lab: Lab) -> None:
        topic_id = await lab.create_topic()
        assert (await fetch(lab, (topic_id, 0, 0), max_wait=0))[0].offsets == []

    async def test_ends_when_min_bytes_are_there(self, lab: Lab) -> None:
        topic_id = await lab.create_topic("t", 2)
        wanted = [(topic_id, 0, 0), (topic_id, 1, 0)]
        pending = start_fetch(lab, *wanted, max_wait=500, min_bytes=2 * SIZE)
        await settle()
        await lab.produce(topic_id, 1, partition=0)
        assert not pending.done
        await lab.produce(topic_id, 1, partition=1)
        assert [read.offsets for read in reads(pending.response())] == [[0], [0]]

    async def test_ends_when_the_topic_is_deleted(self, lab: Lab) -> None:
        topic_id = await lab.create_topic()
        pending = start_fetch(lab, (topic_id, 0, 0), max_wait=500)
        await settle()
        await lab.delete_topic("t")
        (read,) = reads(pending.response())
        assert read.error is ErrorCode.unknown_topic_or_partition

    async def test_ends_with_the_present_records_when_hurried(self, lab: Lab) -> None:
        topic_id = await lab.create_topic()
        await lab.produce(topic_id, 1)
        await fetch(lab, (topic_id, 0, 0))
        pending = start_fetch(lab, (topic_id, 0, 0), max_wait=500, min_bytes=1 << 20)
        await settle()
        tell(pending, "hurry")
        await settle()
        assert reads(pending.response())[0].offsets == [0]

    async def test_hurrying_one_of_two_fetches_does_not_end_the_other(self, lab: Lab) -> None:
        topic_id = await lab.create_topic("t", 2)
        first, second = (
            start_fetch(lab, (topic_id, index, 0), max_wait=500, min_bytes=1 << 20) for index in (0, 1)
        )
        tell(first, "hurry")
        await settle()
        assert first.done and not second.done
        tell(second, "hurry")
        assert second.done

    async def test_withdrawing_one_of_two_fetches_does_not_end_the_other(self, lab: Lab) -> None:
        topic_id = await lab.create_topic("t", 2)
        first, second = (start_fetch(lab, (topic_id, index, 0), max_wait=500) for index in (0, 1))
        tell(first, "withdraw")
        await settle()
        assert len(lab.broker.purgatory) == 1
        tell(second, "withdraw")
        assert len(lab.broker.purgatory) == 0


class TestShareStateIsInvisible:
    async def test_it_is_a_hole_in_the_offsets_below_the_high_watermark(self, lab: Lab) -> None:
        stage = await make_stage(lab)
        await self.acknowledge_all(stage)
        topic_id = stage.partition.topic_id
        assert await fetch(lab, (topic_id, 0, 0)) == [(ErrorCode.none, 2, 0, [0, 1])]
        await stage.produce(1)
        (read,) = await fetch(lab, (topic_id, 0, 2))
        assert (read.offsets, read.high_watermark) == ([5], 6)

    async def test_it_does_not_end_a_wait(self, lab: Lab) -> None:
        stage = await make_stage(lab)
        await stage.produce(2)
        pending = start_fetch(lab, (stage.partition.topic_id, 0, 2), max_wait=500)
        await settle()
        await self.acknowledge_all(stage, produce=False)
        await settle()
        assert not pending.done
        await lab.advance(500)
        assert reads(pending.response()) == [(ErrorCode.none, 2, 0, [])]

    async def test_an_offset_within_a_hole_stands_for_its_end(self, lab: Lab) -> None:
        stage = await make_stage(lab)
        await self.acknowledge_all(stage)
        await stage.produce(1)
        for offset in (3, 4, 5):
            assert (await fetch(lab, (stage.partition.topic_id, 0, offset)))[0].offsets == [5]

    async def acknowledge_all(self, stage: Stage, *, produce: bool = True) -> None:
        """Two records, a beginning and two acknowledgements: five offsets."""
        if produce:
            await stage.produce(2)
        member = stage.member()
        await member.take()
        await member.accept(0, 0)
        await member.accept(1, 1)
