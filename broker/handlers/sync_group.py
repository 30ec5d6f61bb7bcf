"""SyncGroup (key 14, versions 0 to 5; KIP-345, KIP-559): gives a member of a classic group its assignment.

The leader of the group sends the assignments of all members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kio.schema.sync_group.v5.request import SyncGroupRequest
from kio.schema.sync_group.v5.response import SyncGroupResponse

from barnabas.broker.network.handler import Reply, RequestContext
from barnabas.broker.network.replies import respond_when_done
from barnabas.coordinator.classic.requests import SyncRequest, SyncResult
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.primitive import milliseconds

if TYPE_CHECKING:
    from barnabas.coordinator.groups import Groups
    from barnabas.runtime.clock import Clock


_PROTOCOL_VERSION = 5
"""From this version on the request must name the protocol."""


class Parts(NamedTuple):
    clock: Clock
    groups: Groups


def handle_sync_group(parts: Parts, context: RequestContext, request: SyncGroupRequest) -> Reply:
    if context.api_version >= _PROTOCOL_VERSION and None in (request.protocol_type, request.protocol_name):
        return _respond(SyncResult(ErrorCode.inconsistent_group_protocol))
    asked = SyncRequest(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        request.protocol_type,
        request.protocol_name,
        {member.member_id: member.assignment for member in request.assignments},
    )
    reply = parts.groups.classic.sync(asked, now_ms=parts.clock.monotonic_ms())
    return respond_when_done(reply, _respond, _refuse)


def _respond(result: SyncResult) -> SyncGroupResponse:
    return SyncGroupResponse(
        throttle_time=milliseconds(0),
        error_code=result.error_code,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        assignment=result.assignment,
    )


def _refuse(error: ApiError) -> SyncGroupResponse:
    return _respond(SyncResult(error.code))
