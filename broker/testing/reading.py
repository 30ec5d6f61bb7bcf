"""Reads records, and the states of a share group's records, without a client: nothing is acquired.

Both are as a consumer of committed records sees them: without control records and aborted transactions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.protocol.aborted_transactions import AbortedTransactions
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.protocol.record_batch import iterate_headers
from barnabas.protocol.record_inspection import DESCRIBED_RANGES_MAX, NO_NEXT_PAGE
from barnabas.protocol.records import Record, iterate_records
from barnabas.share.leader.inspection import bounds_of, inspect_page
from barnabas.share.partition.inspection import InspectedRange

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker
    from barnabas.coordinator.metadata.image import Topic
    from barnabas.share.leader.share_partition_leader import SharePartitionLeader

PAGE_BYTES: Final = 1024 * 1024
"""The bytes of batches that one page is made of; a larger batch is still read whole."""


class RecordPage(NamedTuple):
    """Some records of a partition, and the offset of the next page; None after the last one."""

    records: list[Record]
    next_offset: int | None


class ShareRange(NamedTuple):
    """Neighbouring records of a partition that are alike for a group."""

    topic: str
    partition: int
    inspected: InspectedRange


def find_topic(broker: Broker, name: str) -> Topic:
    """The topic. ApiError UNKNOWN_TOPIC_OR_PARTITION if there is none."""
    topic = broker.metadata.image.topics_by_name.get(name)
    if topic is None:
        raise ApiError(ErrorCode.unknown_topic_or_partition, f"There is no topic {name}.")
    return topic


async def read_page(broker: Broker, topic: Topic, partition: int, offset: int) -> RecordPage:
    """The committed records from `offset` on, at most about `PAGE_BYTES`. Raises StorageError."""
    log = await broker.logs.open(topic, partition)
    offset = max(offset, log.log_start_offset)
    end_offset = log.last_stable_offset
    if offset >= end_offset:
        return RecordPage([], None)
    read = log.read(offset, bytes_max=PAGE_BYTES, upper_offset=end_offset, with_aborted=True)
    data = b"".join(read.buffers)
    records: list[Record] = []
    next_offset = end_offset
    found = log.aborted_transactions(offset, end_offset)
    aborted = AbortedTransactions.from_index(
        (transaction.producer_id, transaction.first_offset, transaction.last_offset) for transaction in found
    )
    for position, header in iterate_headers(data):
        next_offset = header.last_offset + 1
        is_aborted = header.is_transactional and aborted.covers(header.producer_id, header.base_offset)
        if not header.is_control and not is_aborted:
            records += [record for record in iterate_records(data, position) if record.offset >= offset]
    return RecordPage(records, next_offset if next_offset < end_offset else None)


async def share_ranges(broker: Broker, group_id: str) -> list[ShareRange]:
    """The states of all records in the partitions that the group reads, by topic, partition and offset.

    Raises StorageError, and ApiError, such as GROUP_ID_NOT_FOUND.
    """
    broker.groups.share.check_exists(group_id)
    found: list[ShareRange] = []
    for name, partition in _partitions_of(broker, group_id):
        leader = await broker.fetch_source.load_leader(SharePartitionKey(group_id, *partition))
        found += [ShareRange(name, partition.partition, inspected) for inspected in _inspect(broker, leader)]
    return found


def _partitions_of(broker: Broker, group_id: str) -> list[tuple[str, TopicIdPartition]]:
    by_id = broker.metadata.image.topics_by_id
    return sorted(
        (by_id[topic_id].name, TopicIdPartition(topic_id, index))
        for topic_id, topic in broker.groups.share.initialised_partitions(group_id).items()
        for index in topic.partitions
    )


def _inspect(broker: Broker, leader: SharePartitionLeader) -> Iterator[InspectedRange]:
    config = broker.group_configs.of(leader.group_id)
    offset = leader.log.log_start_offset
    while offset != NO_NEXT_PAGE:
        bounds = bounds_of(leader, config.limits, offset, read_committed=config.read_committed)
        page = inspect_page(leader, config.limits, bounds, DESCRIBED_RANGES_MAX, with_changes=True)
        yield from (record_range.inspected for record_range in page.ranges)
        offset = page.next_offset
