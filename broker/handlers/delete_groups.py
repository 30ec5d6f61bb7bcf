"""DeleteGroups (key 42, versions 0 to 3; KIP-229, KIP-1331): deletes groups without members and their state.

Each group has its own error, and from version 3 on its own error message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.network.handler import RequestContext
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.newer.delete_groups_v3 import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from barnabas.protocol.primitive import GroupId, milliseconds
from barnabas.runtime.completion import Completion

if TYPE_CHECKING:
    from barnabas.coordinator.groups import Groups


class Parts(NamedTuple):
    groups: Groups


async def handle_delete_groups(
    parts: Parts, context: RequestContext, request: DeleteGroupsRequest
) -> DeleteGroupsResponse:
    replies = {
        group_id: parts.groups.delete_group(group_id) for group_id in dict.fromkeys(request.groups_names)
    }
    results = [await _result(group_id, reply) for group_id, reply in replies.items()]
    return DeleteGroupsResponse(throttle_time=milliseconds(0), results=tuple(results))


async def _result(group_id: str, reply: Completion[None]) -> DeletableGroupResult:
    code, message = ErrorCode.none, None
    try:
        await reply
    except ApiError as error:
        code, message = error.code, error.message
    return DeletableGroupResult(group_id=GroupId(group_id), error_code=code, error_message=message)
