"""A disk that has changed written data: only the damaged batch is refused, for as long as it is damaged."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_batch import iterate_headers
from tests.conformance.conftest import with_log_store_only
from tests.conformance.harness import DATA_DIRECTORY, Lab
from tests.conformance.share_member import ACCEPT, GROUP, ShareMember, record_offsets

CORRUPT = ErrorCode.corrupt_message.value
STORAGE = ErrorCode.kafka_storage_error.value


async def begun(lab: Lab, *group_ids: str, partition_count: int = 1) -> tuple[TopicIdPartition, ...]:
    """Partitions of topic `t`, each with three batches of three records, for groups that begin at 0."""
    topic_id = await lab.create_topic("t", partition_count)
    for group_id in group_ids:
        await lab.configure_group(group_id, auto_offset_reset="earliest")
    for index in range(partition_count):
        await lab.produce(topic_id, 3, 3, 3, partition=index)
    return tuple(TopicIdPartition(topic_id, index) for index in range(partition_count))


async def member_of(lab: Lab, group_id: str, *partitions: TopicIdPartition) -> ShareMember:
    member = ShareMember(lab.client(), partitions, group_id=group_id, member_id=f"member-of-{group_id}")
    await member.join("t")
    return member


def spoil(lab: Lab, number: int, partition: int = 0, *, is_control: bool = False) -> None:
    """Flips a bit in the records of a batch; the batch is counted among data batches or among control
    batches.
    """
    content = lab.filesystem.files[f"{DATA_DIRECTORY}/t-{partition}/{0:020d}.log"]
    ends = [
        position + header.size_bytes
        for position, header in iterate_headers(bytes(content))
        if header.is_control == is_control
    ]
    content[ends[number] - 1] ^= 4


async def fetch(lab: Lab, topic_id: UUID, offset: int, *partitions: int) -> list[Any]:
    """The records that a plain consumer gets from each partition."""
    wanted = [
        {"partition": one, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
        for one in partitions or (0,)
    ]
    response = await lab.admin.ask(
        "fetch",
        max_wait=0,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[{"topic_id": topic_id, "partitions": wanted}],
    )
    return list(response.responses[0].partitions)


async def test_a_plain_fetch_gets_the_records_before_a_bad_batch_then_its_error(lab: Lab) -> None:
    (partition,) = await begun(lab)
    await lab.restart()
    spoil(lab, 1)
    offsets: dict[int, list[int] | int] = {}
    for offset in (0, 3, 4, 6):
        (got,) = await fetch(lab, partition.topic_id, offset)
        offsets[offset] = got.error_code.value or record_offsets(got.records)
    assert offsets == {0: [0, 1, 2], 3: CORRUPT, 4: CORRUPT, 6: [6, 7, 8]}
    assert lab.broker.metrics.snapshot()["barnabas_corrupt_batches"] == 1


async def test_other_partitions_of_the_request_are_served(lab: Lab) -> None:
    partitions = await begun(lab, GROUP, partition_count=2)
    await lab.restart()
    spoil(lab, 0, partition=1)
    first, second = await fetch(lab, partitions[0].topic_id, 0, 0, 1)
    assert (record_offsets(first.records), first.error_code) == (list(range(9)), ErrorCode.none)
    assert second.error_code is ErrorCode.corrupt_message
    member = await member_of(lab, GROUP, *partitions)
    got = await member.fetch()
    assert got.partitions[partitions[1]].error == CORRUPT
    assert got.partitions[partitions[0]].offsets == list(range(9))


async def test_a_share_group_gets_the_records_before_a_bad_batch_then_its_error(lab: Lab) -> None:
    (partition,) = await begun(lab, GROUP)
    await lab.restart()
    spoil(lab, 1)
    member = await member_of(lab, GROUP, partition)
    assert await member.take() == [(0, 2, 1)]
    await member.accept(0, 2)
    for _ in range(2):
        got = await member.fetch()
        assert (got.errors, got.acquired) == ([CORRUPT], [])
    assert await lab.offsets(GROUP, partition) == (3, 6), "nothing was passed over"


async def test_released_records_before_a_bad_batch_are_handed_out_again(lab: Lab) -> None:
    (partition,) = await begun(lab, GROUP)
    await lab.restart()
    spoil(lab, 1)
    member = await member_of(lab, GROUP, partition)
    await member.take()
    await member.leave_session()
    member.epoch = 0
    assert await member.take() == [(0, 2, 2)]


async def test_a_group_goes_on_behind_a_bad_batch_once_its_offsets_are_altered(lab: Lab) -> None:
    (partition,) = await begun(lab, GROUP)
    await lab.restart()
    spoil(lab, 1)
    member = await member_of(lab, GROUP, partition)
    await member.take()
    await member.leave_session()
    await member.heartbeat(-1)
    await alter_offset(lab, 6)
    again = await member_of(lab, GROUP, partition)
    assert await again.take() == [(6, 8, 1)]


async def test_every_group_goes_on_once_the_log_begins_behind_the_bad_batch(lab: Lab) -> None:
    (partition,) = await begun(lab, "a", "b")
    await lab.restart()
    spoil(lab, 1)
    members = [await member_of(lab, group_id, partition) for group_id in ("a", "b")]
    for member in members:
        assert await member.take() == [(0, 2, 1)]
    await lab.delete_records("t", 6)
    for member in members:
        assert await member.take() == [(6, 8, 1)]


@with_log_store_only
@pytest.mark.parametrize("is_opened_first", [True, False])
async def test_a_bad_control_record_stops_its_group_alone(lab: Lab, is_opened_first: bool) -> None:
    (partition,) = await begun(lab, "a", "b")
    for group_id in ("a", "b"):
        member = await member_of(lab, group_id, partition)
        await member.take()
        await member.acknowledge([(0, 4, ACCEPT)])
    await lab.restart()
    if is_opened_first:
        await fetch(lab, partition.topic_id, 0)
    spoil(lab, -2, is_control=True)  # the last checkpoint of a; the one of b is behind it
    stuck, other = [await member_of(lab, group_id, partition) for group_id in ("a", "b")]
    got = await stuck.fetch()
    assert (got.error, got.errors, got.acquired) == (0, [STORAGE], [])
    assert await other.take() == [(5, 8, 1)]
    (plain,) = await fetch(lab, partition.topic_id, 0)
    assert record_offsets(plain.records) == list(range(9))
    assert lab.broker.metrics.snapshot()["barnabas_corrupt_batches"] == 1


async def refused_member(lab: Lab, number: int) -> ShareMember:
    """Its group has accepted two ranges before a kill of the broker; now this control record of it is bad."""
    (partition,) = await begun(lab, GROUP)
    member = await member_of(lab, GROUP, partition)
    await member.take()
    await member.accept(0, 1)
    await member.accept(2, 3)
    await lab.crash()
    await fetch(lab, partition.topic_id, 0)
    spoil(lab, number, is_control=True)
    refused = await member_of(lab, GROUP, partition)
    assert (await refused.fetch()).errors == [STORAGE]
    return refused


@with_log_store_only
@pytest.mark.parametrize("number", [0, 1, 2])
async def test_part_of_a_state_never_stands_for_the_whole(lab: Lab, number: int) -> None:
    again = await refused_member(lab, number)
    spoil(lab, number, is_control=True)
    assert await again.take() == [(4, 8, 1)], "the disk has found it again"


@with_log_store_only
@pytest.mark.parametrize("number", [0, 2])
async def test_a_group_whose_state_is_lost_begins_anew_when_its_offsets_are_altered_or_deleted(
    lab: Lab, number: int
) -> None:
    again = await refused_member(lab, number)
    await again.heartbeat(-1)
    if number:
        deleted = await lab.admin.ask(
            "delete_share_group_offsets", group_id=GROUP, topics=[{"topic_name": "t"}]
        )
        assert deleted.responses[0].error_code is ErrorCode.none
    else:
        await alter_offset(lab, 7)
    again = await member_of(lab, GROUP, again.partitions[0])
    assert await again.take() == ([(0, 8, 1)] if number else [(7, 8, 1)])


async def alter_offset(lab: Lab, start_offset: int) -> None:
    altered = await lab.admin.ask(
        "alter_share_group_offsets",
        group_id=GROUP,
        topics=[{"topic_name": "t", "partitions": [{"partition_index": 0, "start_offset": start_offset}]}],
    )
    assert altered.responses[0].partitions[0].error_code is ErrorCode.none, altered
