"""Start offsets from a group's coordinator, and its errors."""

from __future__ import annotations

from typing import cast
from uuid import UUID

import pytest
from kio.schema.describe_share_group_offsets.v1.response import (
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.errors import BrokerUnavailableError
from barnabas.pipeline.share_source.group_admin import GroupAdmin, GroupPosition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.primitive import GroupId, TopicName, i32, i64, milliseconds

ORDERS = TopicIdPartition(UUID(int=1), 0)


class ScriptedCoordinator:
    """The cluster, its coordinator, and the connection there: answers with this code for the partition."""

    is_open = True

    def __init__(self, code: ErrorCode) -> None:
        self._code = code

    async def find_coordinator(self, _: str) -> str:
        return "here"

    async def open(self, _: str) -> ScriptedCoordinator:
        return self

    def close(self) -> None:
        self.is_open = False

    async def ask(self, _api: object, _request: object) -> DescribeShareGroupOffsetsResponse:
        is_known = self._code is ErrorCode.none
        partition = DescribeShareGroupOffsetsResponsePartition(
            partition_index=i32(0),
            start_offset=i64(5 if is_known else -1),
            leader_epoch=i32(0),
            lag=i64(3 if is_known else -1),
            error_code=self._code,
            error_message=None,
        )
        topic = DescribeShareGroupOffsetsResponseTopic(
            topic_name=TopicName("orders"), topic_id=ORDERS.topic_id, partitions=(partition,)
        )
        group = DescribeShareGroupOffsetsResponseGroup(
            group_id=GroupId("g"), topics=(topic,), error_code=ErrorCode.none, error_message=None
        )
        return DescribeShareGroupOffsetsResponse(throttle_time=milliseconds(0), groups=(group,))


async def positions(code: ErrorCode) -> dict[TopicIdPartition, GroupPosition]:
    admin = GroupAdmin(cast("Cluster", ScriptedCoordinator(code)), "g")
    return await admin.positions({"orders": [ORDERS]})


async def test_the_position_of_a_partition_is_that_of_the_coordinator() -> None:
    assert await positions(ErrorCode.none) == {ORDERS: GroupPosition(5, 3)}


async def test_a_missing_topic_has_no_position() -> None:
    assert await positions(ErrorCode.unknown_topic_or_partition) == {}


async def test_a_partition_whose_state_is_being_loaded_is_a_temporary_error() -> None:
    with pytest.raises(BrokerUnavailableError, match="cannot be described now: coordinator_load_in_progress"):
        await positions(ErrorCode.coordinator_load_in_progress)
