"""DeleteRecords: the log start moves up to an offset, and no further than the high watermark."""

import pytest
from kio.schema.delete_records.v2.request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

from barnabas.broker.handlers.delete_records import handle_delete_records
from barnabas.coordinator.metadata.topic_decisions import NewTopic
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import TopicName, i32, i64, milliseconds
from tests.broker.handlers.admin_broker import AdminBroker, ask


async def delete(broker: AdminBroker, name: str, index: int, offset: int) -> tuple[int, ErrorCode]:
    """The low watermark and the error."""
    partition = DeleteRecordsPartition(partition_index=i32(index), offset=i64(offset))
    request = DeleteRecordsRequest(
        topics=(DeleteRecordsTopic(name=TopicName(name), partitions=(partition,)),),
        timeout=milliseconds(1000),
    )
    response = await ask(broker, handle_delete_records, request)
    one = response.topics[0].partitions[0]
    return one.low_watermark, one.error_code


@pytest.mark.parametrize(
    ("offset", "answer"),
    [
        (3, (3, ErrorCode.none)),
        (-1, (5, ErrorCode.none)),
        (5, (5, ErrorCode.none)),
        (6, (-1, ErrorCode.offset_out_of_range)),
        (-2, (-1, ErrorCode.offset_out_of_range)),
    ],
)
async def test_the_log_start_moves_within_the_log(
    broker: AdminBroker, offset: int, answer: tuple[int, ErrorCode]
) -> None:
    await broker.create(NewTopic("t", 1))
    await broker.produce("t", 0, [1, 2, 3, 4, 5])
    assert await delete(broker, "t", 0, offset) == answer


async def test_the_log_start_does_not_go_back(broker: AdminBroker) -> None:
    await broker.create(NewTopic("t", 1))
    await broker.produce("t", 0, [1, 2, 3])
    await delete(broker, "t", 0, 2)
    assert await delete(broker, "t", 0, 1) == (2, ErrorCode.none)


async def test_a_closed_log_is_opened(broker: AdminBroker) -> None:
    await broker.create(NewTopic("t", 1))
    assert await delete(broker, "t", 0, 0) == (0, ErrorCode.none)


@pytest.mark.parametrize(
    ("name", "index", "code"),
    [
        ("x", 0, ErrorCode.unknown_topic_or_partition),
        ("t", 1, ErrorCode.unknown_topic_or_partition),
        ("t", -1, ErrorCode.unknown_topic_or_partition),
        ("__consumer_offsets", 0, ErrorCode.invalid_topic_exception),
        ("compacted", 0, ErrorCode.policy_violation),
    ],
)
async def test_partitions_whose_records_must_not_be_deleted(
    broker: AdminBroker, name: str, index: int, code: ErrorCode
) -> None:
    compacted = NewTopic("compacted", 1, configs={"cleanup.policy": "compact"})
    await broker.create(NewTopic("t", 1), NewTopic("__consumer_offsets", 1), compacted)
    assert await delete(broker, name, index, 0) == (-1, code)
