"""Requests that add ranges of offsets to a transaction, each below a request's size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from barnabas.client.group.offsets import GroupMetadata
from barnabas.client.group.ranges import REQUEST_RANGES_MAX
from barnabas.client.topic_partition import TopicPartition, indexes_by_topic
from barnabas.protocol.committed_ranges import OffsetRange
from barnabas.protocol.extended.packed import pack_ranges
from barnabas.protocol.extended.txn_offset_commit_v4 import TxnOffsetCommitRequest
from barnabas.protocol.extended.txn_offset_commit_v5 import (
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.protocol.primitive import GroupId, ProducerId, TopicName, TransactionalId, i16, i32, i64

_NO_OFFSET: Final = -1


def chunks(
    ranges: Mapping[TopicPartition, Sequence[OffsetRange]],
) -> Iterator[dict[TopicPartition, list[OffsetRange]]]:
    """The ranges in chunks of at most REQUEST_RANGES_MAX, in their order."""
    chunk: dict[TopicPartition, list[OffsetRange]] = {}
    room = REQUEST_RANGES_MAX
    for partition, offset_range in (
        (partition, offset_range)
        for partition, of_partition in ranges.items()
        for offset_range in of_partition
    ):
        if not room:
            yield chunk
            chunk, room = {}, REQUEST_RANGES_MAX
        chunk.setdefault(TopicPartition(*partition), []).append(offset_range)
        room -= 1
    if chunk:
        yield chunk


def ranges_request(
    transactional_id: TransactionalId,
    producer_id: int,
    producer_epoch: int,
    group: GroupMetadata,
    chunk: Mapping[TopicPartition, Sequence[OffsetRange]],
) -> TxnOffsetCommitRequest:
    """The request for one chunk."""
    return TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=GroupId(group.group_id),
        producer_id=ProducerId(producer_id),
        producer_epoch=i16(producer_epoch),
        generation_id=i32(group.member_epoch),
        member_id=group.member_id,
        group_instance_id=group.instance_id,
        topics=tuple(
            TxnOffsetCommitRequestTopic(
                name=TopicName(topic),
                partitions=tuple(_partition(index, chunk[TopicPartition(topic, index)]) for index in indexes),
            )
            for topic, indexes in indexes_by_topic(chunk).items()
        ),
    )


def _partition(index: int, ranges: Sequence[OffsetRange]) -> TxnOffsetCommitRequestPartition:
    return TxnOffsetCommitRequestPartition(
        partition_index=i32(index),
        committed_offset=i64(_NO_OFFSET),
        committed_metadata="",
        ranges=pack_ranges(ranges),
    )
