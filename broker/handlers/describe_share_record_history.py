"""DescribeShareRecordHistory (key 10002, version 0; an API of Barnabas, docs/protocol.md): the steps in the
history of one record for a share group, newest first, page by page.

A page reads a limited number of control records. It changes nothing, and needs the operation DESCRIBE on the
group and on the topic. Every operation is authorized, because there is no authorizer. With
`share.state.store=topic` no history is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.handlers.common.share_records import find_share_partition
from barnabas.broker.network.handler import RequestContext
from barnabas.protocol.delivery_state import encode_condition
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.extended.describe_share_record_history_v0 import (
    DescribedStep,
    DescribeShareRecordHistoryRequest,
    DescribeShareRecordHistoryResponse,
)
from barnabas.protocol.primitive import i8, i16, i64, milliseconds
from barnabas.protocol.record_history import HistoryStep
from barnabas.share.log_store.history_search import HistoryPage, find_history
from barnabas.storage.errors import StorageError

if TYPE_CHECKING:
    from barnabas.broker.internal_topics.share_state_topic import ShareStateTopic
    from barnabas.coordinator.groups import Groups
    from barnabas.coordinator.metadata.controller import Controller
    from barnabas.share.fetch.fetch_source import FetchSource

_NO_NEXT_PAGE = -1


class Parts(NamedTuple):
    metadata: Controller
    share_state: ShareStateTopic | None
    groups: Groups
    fetch_source: FetchSource


async def handle_describe_share_record_history(
    parts: Parts, context: RequestContext, request: DescribeShareRecordHistoryRequest
) -> DescribeShareRecordHistoryResponse:
    try:
        if request.offset < 0:
            raise ApiError(ErrorCode.invalid_request, f"{request.offset} is no offset.")
        leader = await find_share_partition(
            parts.metadata.image,
            parts.groups.share,
            parts.fetch_source,
            request.group_id,
            request.topic_id,
            request.partition_index,
        )
        if parts.share_state is not None:  # the state topic is compacted
            return _answer(None)
        page = find_history(leader.log, leader.group_id, request.offset, request.before_offset)
    except ApiError as error:
        return _refuse(error.code, error.message)
    except StorageError as error:
        return _refuse(error.code, str(error))
    return _answer(page)


def _answer(page: HistoryPage | None) -> DescribeShareRecordHistoryResponse:
    steps = () if page is None else tuple(map(_described, page.steps))
    next_offset = None if page is None else page.next_offset
    return DescribeShareRecordHistoryResponse(
        throttle_time=milliseconds(0),
        error_code=ErrorCode.none,
        is_recorded=page is not None,
        steps=steps,
        next_offset=i64(_NO_NEXT_PAGE if next_offset is None else next_offset),
    )


def _described(step: HistoryStep) -> DescribedStep:
    return DescribedStep(
        control_offset=i64(step.control_offset),
        timestamp_ms=i64(step.timestamp_ms),
        kind=i8(step.kind),
        state=i8(step.state),
        delivery_count=i16(step.delivery_count),
        cause=i8(step.cause),
        member_id=step.member_id,
        condition=None if step.condition is None else encode_condition(step.condition),
    )


def _refuse(code: ErrorCode, message: str | None) -> DescribeShareRecordHistoryResponse:
    return DescribeShareRecordHistoryResponse(
        throttle_time=milliseconds(0),
        error_code=code,
        error_message=message,
        steps=(),
        next_offset=i64(_NO_NEXT_PAGE),
    )
