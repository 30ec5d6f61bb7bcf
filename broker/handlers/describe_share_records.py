"""DescribeShareRecords (key 10000, version 0; an API of Barnabas, docs/protocol.md): the state of each record
of a partition for a share group, page by page.

It changes nothing and acquires nothing, and needs the operation DESCRIBE on the group and on the topic. Every
operation is authorized, because there is no authorizer. With `share.state.store=topic` the last changes are
unknown.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.handlers.common.group_describe import authorized_operations
from barnabas.broker.handlers.common.share_records import HeldLock, find_share_partition, held_lock
from barnabas.broker.network.handler import RequestContext
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.extended.describe_share_records_v0 import (
    DescribedRange,
    DescribeShareRecordsRequest,
    DescribeShareRecordsResponse,
    LastChange,
    LockHolder,
)
from barnabas.protocol.primitive import i8, i16, i64, milliseconds
from barnabas.protocol.record_inspection import DESCRIBED_RANGES_MAX, FROM_START_OFFSET, NO_NEXT_PAGE
from barnabas.share.leader.inspection import DescribedRecords, bounds_of, inspect_page
from barnabas.share.leader.recorded_changes import RecordedChange
from barnabas.storage.errors import StorageError

if TYPE_CHECKING:
    from barnabas.broker.config.group_config import GroupConfigs
    from barnabas.coordinator.groups import Groups
    from barnabas.coordinator.metadata.controller import Controller
    from barnabas.runtime.clock import Clock
    from barnabas.share.fetch.fetch_source import FetchSource
    from barnabas.share.leader.share_partition_leader import SharePartitionLeader

_NO_OFFSET = i64(-1)
_NO_PRIORITY = i8(-1)


class Parts(NamedTuple):
    clock: Clock
    metadata: Controller
    group_configs: GroupConfigs
    groups: Groups
    fetch_source: FetchSource


async def handle_describe_share_records(
    parts: Parts, context: RequestContext, request: DescribeShareRecordsRequest
) -> DescribeShareRecordsResponse:
    try:
        _check(request)
        leader = await find_share_partition(
            parts.metadata.image,
            parts.groups.share,
            parts.fetch_source,
            request.group_id,
            request.topic_id,
            request.partition_index,
        )
        return _describe(parts, leader, request)
    except ApiError as error:
        return _refuse(error.code, error.message)
    except StorageError as error:
        return _refuse(error.code, str(error))


def _check(request: DescribeShareRecordsRequest) -> None:
    if not 1 <= request.max_ranges <= DESCRIBED_RANGES_MAX:
        message = f"A page has 1 to {DESCRIBED_RANGES_MAX} ranges, not {request.max_ranges}."
        raise ApiError(ErrorCode.invalid_request, message)
    if request.first_offset < FROM_START_OFFSET:
        raise ApiError(ErrorCode.invalid_request, f"{request.first_offset} is no offset.")


def _describe(
    parts: Parts, leader: SharePartitionLeader, request: DescribeShareRecordsRequest
) -> DescribeShareRecordsResponse:
    config = parts.group_configs.of(leader.group_id)
    first_offset = None if request.first_offset == FROM_START_OFFSET else request.first_offset
    bounds = bounds_of(leader, config.limits, first_offset, read_committed=config.read_committed)
    page = inspect_page(
        leader, config.limits, bounds, request.max_ranges, with_changes=request.include_last_changes
    )
    return DescribeShareRecordsResponse(
        throttle_time=milliseconds(0),
        error_code=ErrorCode.none,
        start_offset=i64(leader.core.spso),
        end_offset=i64(leader.core.speo),
        log_start_offset=i64(bounds.log_start_offset),
        high_watermark=i64(bounds.high_watermark),
        ranges=tuple(map(partial(_range, parts, leader), page.ranges)),
        next_offset=i64(page.next_offset),
        authorized_operations=authorized_operations(asked_for=request.include_authorized_operations),
    )


def _range(parts: Parts, leader: SharePartitionLeader, described: DescribedRecords) -> DescribedRange:
    inspected, last_change = described
    return DescribedRange(
        first_offset=i64(inspected.first_offset),
        last_offset=i64(inspected.last_offset),
        state=i8(inspected.state),
        delivery_count=i16(inspected.delivery_count),
        wait=i8(inspected.wait),
        holder=_holder(held_lock(parts.groups.share, parts.clock, leader, inspected)),
        last_change=None if last_change is None else _last_change(last_change),
        due_ms=i64(inspected.due_ms),
        priority=_NO_PRIORITY if inspected.priority is None else i8(inspected.priority),
    )


def _holder(lock: HeldLock | None) -> LockHolder | None:
    if lock is None:
        return None
    return LockHolder(
        member_id=lock.member_id,
        client_id=lock.client_id,
        client_host=lock.client_host,
        lock_deadline_ms=i64(lock.lock_deadline_ms),
        lock_remaining_ms=i64(lock.lock_remaining_ms),
        acquired_ms=i64(lock.acquired_ms),
    )


def _last_change(change: RecordedChange) -> LastChange:
    return LastChange(
        cause=i8(change.cause), timestamp_ms=i64(change.timestamp_ms), member_id=change.member_id
    )


def _refuse(code: ErrorCode, message: str | None) -> DescribeShareRecordsResponse:
    return DescribeShareRecordsResponse(
        throttle_time=milliseconds(0),
        error_code=code,
        error_message=message,
        start_offset=_NO_OFFSET,
        end_offset=_NO_OFFSET,
        log_start_offset=_NO_OFFSET,
        high_watermark=_NO_OFFSET,
        ranges=(),
        next_offset=i64(NO_NEXT_PAGE),
    )
