"""AlterShareRecords (key 10001, version 0; an API of Barnabas, docs/protocol.md): an administrator releases,
archives or dead-letters records of a share group.

All records of the request change, or none. The changes are in force immediately, and answered when they are
recorded. If the record could not be written, the response has its error, and the change may still be recorded
with the next one.

It needs the operation READ on the group and on the topic, as AlterShareGroupOffsets does in Kafka. Every
operation is authorized, because there is no authorizer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.handlers.common.share_records import change_records, find_share_partition
from barnabas.broker.network.handler import RequestContext
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.extended.alter_share_records_v0 import (
    AlterShareRecordsRequest,
    AlterShareRecordsResponse,
)
from barnabas.protocol.primitive import i32, milliseconds
from barnabas.protocol.record_inspection import RecordAction
from barnabas.storage.errors import StorageError

if TYPE_CHECKING:
    from barnabas.coordinator.groups import Groups
    from barnabas.coordinator.metadata.controller import Controller
    from barnabas.share.fetch.fetch_source import FetchSource

_ACTIONS = {int(action): action for action in RecordAction}


class Parts(NamedTuple):
    metadata: Controller
    groups: Groups
    fetch_source: FetchSource


async def handle_alter_share_records(
    parts: Parts, context: RequestContext, request: AlterShareRecordsRequest
) -> AlterShareRecordsResponse:
    try:
        record_count = await _alter(parts, context, request)
    except ApiError as error:
        return _response(error.code, error.message)
    except StorageError as error:
        return _response(error.code, str(error))
    return _response(ErrorCode.none, None, record_count)


async def _alter(parts: Parts, context: RequestContext, request: AlterShareRecordsRequest) -> int:
    """The number of records that have changed. Raises ApiError and StorageError."""
    action = _ACTIONS.get(request.action)
    if action is None:
        raise ApiError(ErrorCode.invalid_request, f"There is no action {request.action}.")
    leader = await find_share_partition(
        parts.metadata.image,
        parts.groups.share,
        parts.fetch_source,
        request.group_id,
        request.topic_id,
        request.partition_index,
    )
    return await change_records(
        leader,
        action,
        request.first_offset,
        request.last_offset,
        subject="share",
        caller="an administrator",
        client_id=context.client_id,
        client_host=context.client_host,
    )


def _response(code: ErrorCode, message: str | None, record_count: int = 0) -> AlterShareRecordsResponse:
    return AlterShareRecordsResponse(
        throttle_time=milliseconds(0),
        error_code=code,
        error_message=message,
        record_count=i32(record_count),
    )
