"""Requests of DescribeShareRecords and AlterShareRecords to the leaders of partitions.

Temporary errors are retried for `Retries.give_up_ms`. A change is sent once: if its answer is lost, the
caller must look at the records before the change is repeated.
"""

from __future__ import annotations

from typing import Final

from barnabas.client.cluster import Cluster
from barnabas.client.connection import Connection
from barnabas.client.errors import (
    BrokerUnavailableError,
    MisuseError,
    TopicGoneError,
    UnsupportedBrokerError,
    broker_error,
)
from barnabas.client.inspect.record_range import RangePage, page_of
from barnabas.client.leaders import Leaders
from barnabas.client.patience import Patience
from barnabas.client.topic_partition import TopicPartition
from barnabas.client.topics import TOPIC_GONE_MS, Retries, Topics
from barnabas.protocol.client.inspection_apis import ALTER_SHARE_RECORDS, DESCRIBE_SHARE_RECORDS
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.extended.alter_share_records_v0 import AlterShareRecordsRequest
from barnabas.protocol.extended.describe_share_records_v0 import (
    DescribeShareRecordsRequest,
    DescribeShareRecordsResponse,
)
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.primitive import GroupId, i8, i32, i64
from barnabas.protocol.record_inspection import DESCRIBED_RANGES_MAX, RecordAction

PAGE_RANGES: Final = DESCRIBED_RANGES_MAX
"""The ranges that one request asks for, at most."""


class RecordRequests:
    """The requests for one group. Call `close` once; the cluster stays open."""

    def __init__(self, cluster: Cluster, retries: Retries, group_id: str) -> None:
        self._retries = retries
        self._group_id = group_id
        self._topics = Topics(cluster, retries)
        self._leaders = Leaders(cluster)
        self._found: dict[TopicPartition, TopicIdPartition] = {}

    def close(self) -> None:
        self._topics.close()
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
        patience = self._retries.patience()
        while True:
            connection = await self._connection(found, patience)
            try:
                response = await connection.ask(DESCRIBE_SHARE_RECORDS, request)
                _check(response)
            except BrokerUnavailableError as error:
                self._leaders.doubt(found)
                await patience.pause(error)
                continue
            try:
                return page_of(*partition, response)
            except ValueError as error:
                message = f"the broker is newer than this client: {error}"
                raise UnsupportedBrokerError(ErrorCode.unsupported_version, message) from error

    async def alter(
        self, partition: TopicPartition, action: RecordAction, first_offset: int, last_offset: int
    ) -> int:
        """Change all records of the range, both ends inclusive; the number of records that were changed.

        Raises the errors of `page`. After `BrokerUnavailableError` the result may be unknown.
        """
        found = await self.find(partition)
        connection = await self._connection(found, self._retries.patience())
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

    async def _connection(self, partition: TopicIdPartition, patience: Patience) -> Connection:
        while True:
            try:
                return await self._leaders.connection(partition)
            except TopicGoneError as error:
                await patience.pause(error, give_up_ms=TOPIC_GONE_MS)
            except BrokerUnavailableError as error:
                await patience.pause(error)


def _check(response: DescribeShareRecordsResponse) -> None:
    code = response.error_code
    if code is ErrorCode.none:
        return
    if code.retriable:
        reason = response.error_message or code.name
        raise BrokerUnavailableError(f"The records cannot be described at the moment: {reason}")
    raise broker_error(code, response.error_message)
