"""The part of one partition in a fetch: its log, the bytes available, and the records.

Clients never see share state: it is cut out of the records, and the high watermark is the visible one.
`fetch_operation.py` decides which partitions are read, and how much of each. `range_fetch.py` serves
consumers that share a partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

from barnabas.broker.sessions.fetch_sessions import NOTHING_SENT, WantedPartition
from barnabas.coordinator.metadata.leader_epoch import check_leader_epoch
from barnabas.protocol.encode.fetch import FetchPartitionResult
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.tuples import maker
from barnabas.protocol.varint import Buffer
from barnabas.storage.errors import StorageError

if TYPE_CHECKING:
    from barnabas.coordinator.metadata.image import MetadataImage
    from barnabas.storage.log.partition_log import PartitionLog

READ_COMMITTED: Final = 1
_NO_ERROR: Final = ErrorCode.none.value
_NO_EPOCH: Final = -1
_UNKNOWN: Final = -1
"""The offsets in a result with an error."""
_NOTHING_MORE: Final = (None, None, None)
"""The last fields of a usual result."""
_new_result = maker(FetchPartitionResult)


def look_up(image: MetadataImage, partition: WantedPartition) -> None:
    """Find the topic again after topics were created or deleted. The log is kept if the topic is the same."""
    partition.topics_revision = image.topics_revision
    reference, index = partition.key
    if isinstance(reference, UUID):
        topic = image.topics_by_number.get(reference.int)
    else:
        topic = image.topics_by_name.get(reference)
    if topic is not partition.topic:
        partition.log = None
    partition.topic, partition.error_code = topic, ErrorCode.none
    if topic is None:
        partition.error_code = _unknown_error(image, partition)
        return
    partition.topic_name = topic.name
    if not 0 <= index < len(topic.partitions):
        partition.topic, partition.error_code = None, ErrorCode.unknown_topic_or_partition


def _unknown_error(image: MetadataImage, partition: WantedPartition) -> ErrorCode:
    """The error for a topic that is not found. A session keeps the name of an id, which may now belong to
    another topic.
    """
    reference, index = partition.key
    if isinstance(reference, str):
        return ErrorCode.unknown_topic_or_partition
    if not partition.topic_name:
        return ErrorCode.unknown_topic_id
    is_another = image.partition(partition.topic_name, index) is not None
    return ErrorCode.inconsistent_topic_id if is_another else ErrorCode.unknown_topic_or_partition


def is_up_to_date(partition: WantedPartition, isolation_level: int) -> bool:
    """Whether the client has all records, and knows the current offsets, so that there is nothing to report.

    This is the fast path for nearly all partitions of a session, because every fetch checks them all. False
    does not mean that there is something to report.
    """
    log, asked = partition.log, partition.asked
    if log is None or partition.last_sent is NOTHING_SENT:
        return False
    state = log.state
    return (
        state.offline is None
        and asked.fetch_offset == upper_offset_of(log, isolation_level)
        and partition.last_sent == (state.high_watermark, state.log_start_offset)
        and asked.current_leader_epoch in (_NO_EPOCH, state.leader_epoch)
        and asked.last_fetched_epoch in (_NO_EPOCH, state.leader_epoch)
    )


def available_bytes(partition: WantedPartition, isolation_level: int, *, enough: int) -> int:
    """The bytes available to read: at most the partition's maximum, and counted only up to about `enough`.

    If the client's log diverges, the result is `enough`, so that the fetch returns at once. Raises ApiError
    or StorageError for an error that the response must report.
    """
    log, asked = open_log(partition), partition.asked
    if asked.last_fetched_epoch != _NO_EPOCH and diverging_at(log, partition) is not None:
        return enough
    upper_offset = upper_offset_of(log, isolation_level)
    available = log.available_bytes(asked.fetch_offset, upper_offset=upper_offset, enough=enough)
    return min(available, max(asked.partition_max_bytes, 1))


def read(
    partition: WantedPartition, isolation_level: int, bytes_max: int, *, at_least_one: bool
) -> FetchPartitionResult:
    """The partition's part of the response."""
    try:
        log, asked = open_log(partition), partition.asked
        if asked.last_fetched_epoch != _NO_EPOCH:
            diverging = diverging_at(log, partition)
            if diverging is not None:
                return result_of(partition, log, None, (), diverging)
        slice_ = log.read(
            asked.fetch_offset,
            bytes_max=bytes_max,
            upper_offset=upper_offset_of(log, isolation_level),
            at_least_one=at_least_one,
            with_aborted=isolation_level == READ_COMMITTED,
        )
    except (ApiError, StorageError) as error:
        return refused(partition, error.code)
    aborted = slice_.aborted if isolation_level == READ_COMMITTED else None
    return result_of(partition, log, aborted, slice_.buffers)


def missing(partition: WantedPartition) -> FetchPartitionResult:
    """The result of a partition that doesn't exist. As in Kafka its list of aborted transactions is empty;
    that of a partition that cannot be read is null.
    """
    return refused(partition, partition.error_code)._replace(aborted=())


def refused(partition: WantedPartition, error_code: ErrorCode) -> FetchPartitionResult:
    return FetchPartitionResult(
        partition.asked.partition, error_code.value, _UNKNOWN, _UNKNOWN, _UNKNOWN, None, ()
    )


def result_of(
    partition: WantedPartition,
    log: PartitionLog,
    aborted: Sequence[tuple[int, int]] | None,
    records: Sequence[Buffer],
    diverging: tuple[int, int] | None = None,
) -> FetchPartitionResult:
    state = log.state
    return _new_result(
        (
            partition.asked.partition,
            _NO_ERROR,
            state.high_watermark,
            state.last_stable_offset,
            state.log_start_offset,
            aborted,
            records,
            diverging,
            *_NOTHING_MORE,
        )
    )


def open_log(partition: WantedPartition) -> PartitionLog:
    """The partition's open log. Raises ApiError if there is no partition, if the log could not be opened, or
    if the client has another leader epoch.
    """
    log = partition.log
    if partition.topic is None:
        raise ApiError(partition.error_code)
    if log is None or log.state.offline is not None:
        raise ApiError(ErrorCode.kafka_storage_error)
    if partition.asked.current_leader_epoch != _NO_EPOCH:
        check_leader_epoch(log.state.leader_epoch, partition.asked.current_leader_epoch)
    return log


def diverging_at(log: PartitionLog, partition: WantedPartition) -> tuple[int, int] | None:
    """The leader epoch and end offset at which the client's log diverges (KIP-320, KIP-595); None if it
    doesn't, or if the client names no epoch.

    Raises ApiError OFFSET_OUT_OF_RANGE for an unknown epoch, and for an offset below the log start.
    """
    asked = partition.asked
    if asked.last_fetched_epoch == _NO_EPOCH:
        return None
    epoch, end_offset = log.end_offset_for_epoch(asked.last_fetched_epoch)
    if epoch == _NO_EPOCH or asked.fetch_offset < log.log_start_offset:
        raise ApiError(ErrorCode.offset_out_of_range)
    if epoch < asked.last_fetched_epoch or end_offset < asked.fetch_offset:
        return epoch, end_offset
    return None


def upper_offset_of(log: PartitionLog, isolation_level: int) -> int:
    """The exclusive end of the records that this consumer may read."""
    state = log.state
    return state.last_stable_offset if isolation_level == READ_COMMITTED else state.high_watermark
