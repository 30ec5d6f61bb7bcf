"""OffsetForLeaderEpoch: the end of an epoch, and clients with another leader epoch."""

import pytest
from kio.schema.offset_for_leader_epoch.v4.request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

from barnabas.broker.handlers.offset_for_leader_epoch import handle_offset_for_leader_epoch
from barnabas.coordinator.metadata.topic_decisions import NewTopic
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import BrokerId, TopicName, i32
from tests.broker.handlers.admin_broker import AdminBroker, ask


async def end_of(
    broker: AdminBroker,
    leader_epoch: int,
    *,
    name: str = "t",
    index: int = 0,
    current: int = -1,
    version: int = 4,
) -> tuple[ErrorCode, int, int]:
    """The error, the epoch found and its end offset."""
    asked = OffsetForLeaderPartition(
        partition=i32(index), current_leader_epoch=i32(current), leader_epoch=i32(leader_epoch)
    )
    request = OffsetForLeaderEpochRequest(
        replica_id=BrokerId(-1),
        topics=(OffsetForLeaderTopic(topic=TopicName(name), partitions=(asked,)),),
    )
    response = await ask(broker, handle_offset_for_leader_epoch, request, version=version)
    one = response.topics[0].partitions[0]
    return one.error_code, one.leader_epoch, one.end_offset


@pytest.mark.parametrize("version", [2, 3, 4])
async def test_the_current_epoch_ends_at_the_high_watermark(broker: AdminBroker, version: int) -> None:
    await broker.create(NewTopic("t", 1))
    await broker.produce("t", 0, [1, 2, 3])
    assert await end_of(broker, 0, version=version) == (ErrorCode.none, 0, 3)


@pytest.mark.parametrize("leader_epoch", [1, -1])
async def test_an_unknown_epoch_has_no_end(broker: AdminBroker, leader_epoch: int) -> None:
    await broker.create(NewTopic("t", 1))
    await broker.produce("t", 0, [1, 2, 3])
    assert await end_of(broker, leader_epoch) == (ErrorCode.none, -1, -1)


@pytest.mark.parametrize(
    ("current", "code"),
    [(5, ErrorCode.unknown_leader_epoch), (-7, ErrorCode.fenced_leader_epoch)],
)
async def test_a_client_with_another_leader_epoch_is_refused(
    broker: AdminBroker, current: int, code: ErrorCode
) -> None:
    await broker.create(NewTopic("t", 1))
    assert await end_of(broker, 0, current=current) == (code, -1, -1)


@pytest.mark.parametrize(("name", "index"), [("x", 0), ("t", 4)])
async def test_a_partition_that_does_not_exist(broker: AdminBroker, name: str, index: int) -> None:
    await broker.create(NewTopic("t", 1))
    assert await end_of(broker, 0, name=name, index=index) == (ErrorCode.unknown_topic_or_partition, -1, -1)
