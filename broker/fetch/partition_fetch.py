"""What one partition has for a fetch: its log, whether there is something to wait for, and a slice.

Share state never shows: it is cut out of the slices, and the high watermark told is the visible one. Which
partitions are fetched, and how much of each, is the fetch operation's (`fetch_operation.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

from barnabas.broker.sessions.fetch_sessions import WantedPartition
from barnabas.coordinator.metadata.leader_epoch import check_leader_epoch
from barnabas.protocol.encode.fetch import FetchPartitionResult
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.varint import Buffer
from barnabas.storage.errors import StorageError

if TYPE_CHECKING:
    from barnabas.coordinator.metadata.image import MetadataImage
    from barnabas.storage.log.partition_log import PartitionLog

READ_COMMITTED: Final = 1
_NO_ERROR: Final = ErrorCode.none.value
_NO_EPOCH: Final = -1
_UNKNOWN: Final = -1
"""An offset, if there is an error."""


def look_up(image: MetadataImage, one: WantedPartition) -> None:
    """Find the topic anew: topics have come or gone since. The log stays known if the topic is the same."""
    one.topics_revision = image.topics_revision
    reference, index = one.key
    if isinstance(reference, UUID):
        topic = image.topics_by_id.get(reference)
    else:
        topic = image.topics_by_name.get(reference)
    if topic is not one.topic:
        one.log = None
    one.topic, one.error_code = topic, ErrorCode.none
    if topic is None:
        one.error_code = _why_unknown(image, one)
        return
    one.topic_name = topic.name
    if not 0 <= index < len(topic.partitions):
        one.topic, one.error_code = None, ErrorCode.unknown_topic_or_partition


def _why_unknown(image: MetadataImage, one: WantedPartition) -> ErrorCode:
    """A session remembers what the topic of an id was called: another may bear that name by now."""
    reference, index = one.key
    if isinstance(reference, str):
        return ErrorCode.unknown_topic_or_partition
    if not one.topic_name:
        return ErrorCode.unknown_topic_id
    is_another = image.partition(one.topic_name, index) is not None
    return ErrorCode.inconsistent_topic_id if is_another else ErrorCode.unknown_topic_or_partition


def is_up_to_date(one: WantedPartition, isolation_level: int) -> bool:
    """Whether the client has all there is to read, and was told how far that goes: there is nothing to say.

    The short way for nearly all partitions of a session, of which each fetch looks at every one. False says
    nothing.
    """
    log, asked = one.log, one.asked
    return (
        log is not None
        and log.offline is None
        and asked.fetch_offset == _upper_offset(log, isolation_level)
        and one.told == (log.high_watermark, log.log_start_offset)
        and asked.current_leader_epoch in (_NO_EPOCH, log.leader_epoch)
        and asked.last_fetched_epoch in (_NO_EPOCH, log.leader_epoch)
    )


def available_bytes(one: WantedPartition, isolation_level: int, *, enough: int) -> int:
    """How much there is to read, counted no further than to `enough`, and than the partition may give.

    ApiError or StorageError if there is an error to be told, or a log that differs from the client's.
    """
    log, asked = _log(one), one.asked
    if asked.last_fetched_epoch != _NO_EPOCH and _diverging(log, one) is not None:
        return enough
    upper_offset = _upper_offset(log, isolation_level)
    available = log.available_bytes(asked.fetch_offset, upper_offset=upper_offset, enough=enough)
    return min(available, max(asked.partition_max_bytes, 1))


def read(
    one: WantedPartition, isolation_level: int, bytes_max: int, *, at_least_one: bool
) -> FetchPartitionResult:
    """The partition's part of the answer."""
    try:
        log, asked = _log(one), one.asked
        if asked.last_fetched_epoch != _NO_EPOCH:
            diverging = _diverging(log, one)
            if diverging is not None:
                return _result(one, log, None, (), diverging)
        slice_ = log.read(
            asked.fetch_offset,
            bytes_max=bytes_max,
            upper_offset=_upper_offset(log, isolation_level),
            at_least_one=at_least_one,
            with_aborted=isolation_level == READ_COMMITTED,
        )
    except (ApiError, StorageError) as error:
        return _refused(one, error.code)
    aborted = slice_.aborted if isolation_level == READ_COMMITTED else None
    return _result(one, log, aborted, slice_.buffers)


def missing(one: WantedPartition) -> FetchPartitionResult:
    """The answer for a partition that doesn't exist. As in Kafka it has no aborted transactions, while one
    that cannot be read says nothing of them.
    """
    return _refused(one, one.error_code)._replace(aborted=())


def _refused(one: WantedPartition, error_code: ErrorCode) -> FetchPartitionResult:
    return FetchPartitionResult(one.asked.partition, error_code.value, _UNKNOWN, _UNKNOWN, _UNKNOWN, None, ())


def _result(
    one: WantedPartition,
    log: PartitionLog,
    aborted: Sequence[tuple[int, int]] | None,
    records: Sequence[Buffer],
    diverging: tuple[int, int] | None = None,
) -> FetchPartitionResult:
    return FetchPartitionResult(
        one.asked.partition,
        _NO_ERROR,
        log.high_watermark,
        log.last_stable_offset,
        log.log_start_offset,
        aborted,
        records,
        diverging,
    )


def _log(one: WantedPartition) -> PartitionLog:
    """The partition's open log; ApiError if there is none, if it could not be opened, or if it is led in
    another epoch than the client thinks.
    """
    log = one.log
    if one.topic is None:
        raise ApiError(one.error_code)
    if log is None or log.offline is not None:
        raise ApiError(ErrorCode.kafka_storage_error)
    check_leader_epoch(log.leader_epoch, one.asked.current_leader_epoch)
    return log


def _diverging(log: PartitionLog, one: WantedPartition) -> tuple[int, int] | None:
    """(leader epoch, end offset) at which the client's log parts from this one (KIP-320, KIP-595).

    OFFSET_OUT_OF_RANGE for an epoch that is not known here, and for an offset that is gone.
    """
    asked = one.asked
    epoch, end_offset = log.end_offset_for_epoch(asked.last_fetched_epoch)
    if epoch == _NO_EPOCH or asked.fetch_offset < log.log_start_offset:
        raise ApiError(ErrorCode.offset_out_of_range)
    if epoch < asked.last_fetched_epoch or end_offset < asked.fetch_offset:
        return epoch, end_offset
    return None


def _upper_offset(log: PartitionLog, isolation_level: int) -> int:
    """Exclusive end of what this consumer may read."""
    return log.last_stable_offset if isolation_level == READ_COMMITTED else log.high_watermark
