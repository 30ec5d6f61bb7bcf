"""ListOffsets: special offsets and timestamps, with results recorded from Apache Kafka 4.3.1."""

import pytest
from kio.schema.list_offsets.v11.request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

from barnabas.broker.handlers.list_offsets import handle_list_offsets
from barnabas.coordinator.metadata.topic_decisions import NewTopic
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import BrokerId, TopicName, i8, i32, i64, milliseconds
from tests.broker.handlers.admin_broker import AdminBroker, ask

TIMES = [1_000_000 + 10 * number for number in range(10)]
NOTHING = (ErrorCode.none, -1, -1, -1)


def partition(timestamp: int, index: int = 0, leader_epoch: int = -1) -> ListOffsetsPartition:
    return ListOffsetsPartition(
        partition_index=i32(index), current_leader_epoch=i32(leader_epoch), timestamp=i64(timestamp)
    )


async def answers(
    broker: AdminBroker,
    *partitions: ListOffsetsPartition,
    name: str = "t",
    version: int = 11,
    isolation: int = 0,
) -> list[tuple[ErrorCode, int, int, int]]:
    """The (error, timestamp, offset, leader epoch) of each partition."""
    request = ListOffsetsRequest(
        replica_id=BrokerId(-1),
        isolation_level=i8(isolation),
        topics=(ListOffsetsTopic(name=TopicName(name), partitions=partitions),),
        timeout=milliseconds(1000),
    )
    response = await ask(broker, handle_list_offsets, request, version=version)
    return [
        (one.error_code, one.timestamp, one.offset, one.leader_epoch) for one in response.topics[0].partitions
    ]


@pytest.mark.parametrize(
    ("timestamp", "answer"),
    [
        (-1, (ErrorCode.none, -1, 10, 0)),
        (-2, (ErrorCode.none, -1, 0, 0)),
        (-3, (ErrorCode.none, 1_000_090, 9, 0)),
        (-4, (ErrorCode.none, -1, 0, 0)),
        (-5, NOTHING),
        (-6, NOTHING),
        (-7, (ErrorCode.unsupported_version, -1, -1, -1)),
        (0, (ErrorCode.none, 1_000_000, 0, 0)),
        (1_000_005, (ErrorCode.none, 1_000_010, 1, 0)),
        (1_000_090, (ErrorCode.none, 1_000_090, 9, 0)),
        (1_000_091, NOTHING),
    ],
)
@pytest.mark.parametrize("isolation", [0, 1])
async def test_each_timestamp_has_its_offset(
    broker: AdminBroker, timestamp: int, answer: tuple[ErrorCode, int, int, int], isolation: int
) -> None:
    await broker.create(NewTopic("t", 1))
    await broker.produce("t", 0, TIMES)
    assert await answers(broker, partition(timestamp), isolation=isolation) == [answer]


@pytest.mark.parametrize(
    ("timestamp", "answer"),
    [
        (-1, (ErrorCode.none, -1, 0, 0)),
        (-2, (ErrorCode.none, -1, 0, 0)),
        (-3, NOTHING),
        (5, NOTHING),
    ],
)
async def test_an_empty_log_has_both_ends_and_no_records(
    broker: AdminBroker, timestamp: int, answer: tuple[ErrorCode, int, int, int]
) -> None:
    await broker.create(NewTopic("t", 1))
    assert await answers(broker, partition(timestamp)) == [answer]


@pytest.mark.parametrize(
    ("timestamp", "version", "known"),
    [
        (-3, 6, False),
        (-3, 7, True),
        (-4, 7, False),
        (-4, 8, True),
        (-5, 8, False),
        (-5, 9, True),
        (-1, 1, True),
    ],
)
async def test_special_offsets_need_a_version(
    broker: AdminBroker, timestamp: int, version: int, known: bool
) -> None:
    await broker.create(NewTopic("t", 1))
    await broker.produce("t", 0, TIMES)
    ((code, *_),) = await answers(broker, partition(timestamp), version=version)
    assert code is (ErrorCode.none if known else ErrorCode.unsupported_version)


@pytest.mark.parametrize(
    ("leader_epoch", "code"),
    [(0, ErrorCode.none), (9, ErrorCode.unknown_leader_epoch), (-5, ErrorCode.fenced_leader_epoch)],
)
async def test_a_client_with_another_leader_epoch_is_refused(
    broker: AdminBroker, leader_epoch: int, code: ErrorCode
) -> None:
    await broker.create(NewTopic("t", 1))
    ((found, *_),) = await answers(broker, partition(-1, leader_epoch=leader_epoch))
    assert found is code


@pytest.mark.parametrize(("name", "index"), [("x", 0), ("t", 5), ("t", -1)])
async def test_a_partition_that_does_not_exist(broker: AdminBroker, name: str, index: int) -> None:
    await broker.create(NewTopic("t", 1))
    assert await answers(broker, partition(-1, index), name=name) == [
        (ErrorCode.unknown_topic_or_partition, -1, -1, -1)
    ]


async def test_a_duplicate_partition_has_one_result(broker: AdminBroker) -> None:
    await broker.create(NewTopic("t", 1))
    assert await answers(broker, partition(-1), partition(-2)) == [(ErrorCode.invalid_request, -1, -1, -1)]


async def test_the_start_follows_deleted_records(broker: AdminBroker) -> None:
    await broker.create(NewTopic("t", 1))
    log = await broker.produce("t", 0, TIMES)
    log.delete_records(4)
    assert await answers(broker, partition(-2)) == [(ErrorCode.none, -1, 4, 0)]
    assert await answers(broker, partition(0)) == [(ErrorCode.none, 1_000_040, 4, 0)]
