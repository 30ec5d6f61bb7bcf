"""The partitions of `__consumer_offsets` at work, whatever type of group a record is of, or an offset.

One runtime a partition, so that records of all types stand in one order, as in Kafka: a group's deletion
under one type comes before its creation under another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias, TypeGuard, cast

from barnabas.coordinator.consumer.record_factory import ConsumerRecord
from barnabas.coordinator.group.partition_hash import GROUP_PARTITION_COUNT, partition_of_group
from barnabas.coordinator.runtime.interfaces import CoordinatorLog
from barnabas.coordinator.runtime.partition_runtime import PartitionRuntime, TransactionReplay
from barnabas.coordinator.share_group.record_factory import GroupRecord
from barnabas.protocol.classic_group_records import (
    ClassicGroupRecord,
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetRecord,
    decode_classic_record,
    encode_classic_key,
    encode_classic_value,
)
from barnabas.protocol.consumer_group_records import (
    ConsumerGroupKey,
    decode_consumer_group_record,
    encode_consumer_group_key,
    encode_consumer_group_value,
)
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.group_records import decode_group_record, encode_group_key, encode_group_value
from barnabas.protocol.varint import Buffer

AnyGroupRecord: TypeAlias = GroupRecord | ClassicGroupRecord | ConsumerRecord | OffsetRecord
GroupRuntime: TypeAlias = PartitionRuntime[AnyGroupRecord]


class GroupReplay(TransactionReplay[AnyGroupRecord], Protocol):
    """Where records go, once they are in the log."""

    def replay(self, record: AnyGroupRecord, offset: int) -> None:
        """A record, of any type, that an operation has written outside of transactions."""
        ...


class GroupRuntimes:
    """A runtime for each partition."""

    def __init__(self, log: CoordinatorLog, groups: GroupReplay, *, max_queued_operations: int) -> None:
        self._partitions = [
            PartitionRuntime[AnyGroupRecord](
                partition,
                log,
                encode=_encode,
                replay=groups.replay,
                transactions=groups,
                max_queued_operations=max_queued_operations,
            )
            for partition in range(GROUP_PARTITION_COUNT)
        ]

    @property
    def runtimes(self) -> Sequence[GroupRuntime]:
        """Those of all partitions, in their order."""
        return self._partitions

    def of_partition(self, partition: int) -> GroupRuntime:
        return self._partitions[partition]

    def of_group(self, group_id: str) -> GroupRuntime:
        return self._partitions[partition_of_group(group_id)]

    def check_loaded(self, group_id: str) -> None:
        """COORDINATOR_LOAD_IN_PROGRESS if the group's partition isn't loaded."""
        if not self.of_group(group_id).loaded:
            raise ApiError(ErrorCode.coordinator_load_in_progress, "The groups are being loaded.")


def is_offset(record: AnyGroupRecord) -> TypeGuard[OffsetRecord]:
    """Whether a record is an offset that was committed, by a group of any type."""
    return isinstance(record[0], OffsetCommitKey)


def is_classic(record: AnyGroupRecord) -> TypeGuard[ClassicGroupRecord]:
    """Whether a record is a classic group's."""
    return isinstance(record[0], GroupMetadataKey)


def is_consumer(record: AnyGroupRecord) -> TypeGuard[ConsumerRecord]:
    """Whether a record is a consumer group's."""
    return isinstance(record[0], ConsumerGroupKey)


def decode_record(key: Buffer, value: Buffer | None) -> AnyGroupRecord | None:
    """A record of any type of group that there is here, or None. RecordFormatError if it is malformed."""
    return (
        decode_classic_record(key, value)
        or decode_consumer_group_record(key, value)
        or decode_group_record(key, value)
    )


def _encode(record: AnyGroupRecord) -> tuple[bytes, bytes | None]:
    if is_offset(record) or is_classic(record):
        classic_key, classic_value = record
        encoded = None if classic_value is None else encode_classic_value(classic_value)
        return encode_classic_key(classic_key), encoded
    if is_consumer(record):
        consumer_key, consumer_value = record
        encoded = None if consumer_value is None else encode_consumer_group_value(consumer_value)
        return encode_consumer_group_key(consumer_key), encoded
    key, value = cast("GroupRecord", record)
    return encode_group_key(key), None if value is None else encode_group_value(value)
