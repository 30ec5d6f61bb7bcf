"""DeleteGroups (key 42, versions 0 to 2; KIP-229): groups without members, each with its own error, with
all their state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.network.dispatch import RequestContext
from barnabas.coordinator.reply import CoordinatorReply
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from barnabas.protocol.primitive import GroupId, milliseconds

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


async def handle_delete_groups(
    broker: Broker, context: RequestContext, request: DeleteGroupsRequest
) -> DeleteGroupsResponse:
    replies = {
        group_id: broker.groups.delete_group(group_id) for group_id in dict.fromkeys(request.groups_names)
    }
    results = [
        DeletableGroupResult(group_id=GroupId(group_id), error_code=await _error_code(reply))
        for group_id, reply in replies.items()
    ]
    return DeleteGroupsResponse(throttle_time=milliseconds(0), results=tuple(results))


async def _error_code(reply: CoordinatorReply[None]) -> ErrorCode:
    try:
        await reply
    except ApiError as error:
        return error.code
    return ErrorCode.none
