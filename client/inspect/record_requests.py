"""Requests of DescribeShareRecords and AlterShareRecords to the leaders of partitions.

Temporary errors are retried for `Retries.give_up_ms`. A change is sent once: if its answer is lost, the
caller must look at the records before the change is repeated.
"""

from __future__ import annotations

from typing import Final

from barnabas.client.admin.connection import AdminConnection
from barnabas.client.cluster.leader_requests import LeaderRequests
from barnabas.client.errors import MisuseError, UnsupportedBrokerError, broker_error
from barnabas.client.inspect.record_range import RangePage, page_of, step_of
from barnabas.client.topic_partition import TopicPartition
from barnabas.protocol.client.inspection_apis import (
    ALTER_SHARE_RECORDS,
    DESCRIBE_SHARE_RECORD_HISTORY,
    DESCRIBE_SHARE_RECORDS,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.extended.alter_share_records_v0 import AlterShareRecordsRequest
from barnabas.protocol.extended.describe_share_record_history_v0 import DescribeShareRecordHistoryRequest
from barnabas.protocol.extended.describe_share_records_v0 import DescribeShareRecordsRequest
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.primitive import GroupId, i8, i32, i64
from barnabas.protocol.record_history import HistoryStep
from barnabas.protocol.record_inspection import DESCRIBED_RANGES_MAX, NO_NEXT_PAGE, RecordAction

PAGE_RANGES: Final = DESCRIBED_RANGES_MAX
"""The ranges that one request asks for, at most."""

_ALL: Final = -1
"""As the offset before which a page of a history begins: all control records."""


class RecordRequests:
    """The requests for one group. Call `close` once; the `AdminConnection` stays open."""

    def __init__(self, connection: AdminConnection, group_id: str) -> None:
        self._topics = connection.topics
        self._leaders = LeaderRequests(connection.cluster, connection.retries)
        self._group_id = group_id
        self._found: dict[TopicPartition, TopicIdPartition] = {}

    def close(self) -> None:
        self._leaders.close()

    async def find(self, partition: TopicPartition) -> TopicIdPartition:
        """The partition by its topic's id, which is asked for once.

        Raises `UnknownTopicError`, `MisuseError` if the topic has no such partition, `BrokerError` and
        `BrokerUnavailableError`.
        """
        found = self._found.get(partition)
        if found is None:
            (topic,) = await self._topics.find([partition.topic])
            if not 0 <= partition.partition < topic.partition_count:
                last = topic.partition_count - 1
                message = f"{topic.name} has no partition {partition.partition}; its last one is {last}."
                raise MisuseError(message)
            found = self._found[partition] = TopicIdPartition(topic.topic_id, partition.partition)
        return found

    async def page(
        self, partition: TopicPartition, first_offset: int, ranges_max: int = PAGE_RANGES
    ) -> RangePage:
        """One page from this offset on, or from the group's start offset for -1. Raises the errors of `find`.

        `UnsupportedBrokerError`: the broker is not Barnabas, or an older version.
        """
        found = await self.find(partition)
        request = DescribeShareRecordsRequest(
            group_id=GroupId(self._group_id),
            topic_id=found.topic_id,
            partition_index=i32(found.partition),
            first_offset=i64(first_offset),
            max_ranges=i32(ranges_max),
            include_last_changes=True,
            include_authorized_operations=False,
        )
        response = await self._leaders.ask(found, DESCRIBE_SHARE_RECORDS, request)
        try:
            return page_of(*partition, response)
        except ValueError as error:
            raise _newer(error) from error

    async def history(self, partition: TopicPartition, offset: int) -> list[HistoryStep] | None:
        """The steps of the record at this offset, oldest first; None if the broker keeps no histories.

        Raises the errors of `page`. The pages may be of different moments.
        """
        found = await self.find(partition)
        steps: list[HistoryStep] = []
        before_offset = _ALL
        while True:
            request = DescribeShareRecordHistoryRequest(
                group_id=GroupId(self._group_id),
                topic_id=found.topic_id,
                partition_index=i32(found.partition),
                offset=i64(offset),
                before_offset=i64(before_offset),
            )
            response = await self._leaders.ask(found, DESCRIBE_SHARE_RECORD_HISTORY, request)
            if not response.is_recorded:
                return None
            try:
                steps += map(step_of, response.steps)
            except ValueError as error:
                raise _newer(error) from error
            before_offset = response.next_offset
            if before_offset == NO_NEXT_PAGE:
                return steps[::-1]

    async def alter(
        self, partition: TopicPartition, action: RecordAction, first_offset: int, last_offset: int
    ) -> int:
        """Change all records of the range, both ends inclusive; the number of records that were changed.

        Raises the errors of `page`. After `BrokerUnavailableError` the result may be unknown.
        """
        found = await self.find(partition)
        connection = await self._leaders.connection(found)
        request = AlterShareRecordsRequest(
            group_id=GroupId(self._group_id),
            topic_id=found.topic_id,
            partition_index=i32(found.partition),
            action=i8(action),
            first_offset=i64(first_offset),
            last_offset=i64(last_offset),
        )
        response = await connection.ask(ALTER_SHARE_RECORDS, request)
        if response.error_code is not ErrorCode.none:
            raise broker_error(response.error_code, response.error_message)
        return response.record_count


def _newer(error: ValueError) -> UnsupportedBrokerError:
    """The broker's answer has a term that this version does not know."""
    message = f"the broker is newer than this client: {error}"
    return UnsupportedBrokerError(ErrorCode.unsupported_version, message)
