"""JoinGroup (key 11, versions 0 to 9; KIP-62, KIP-345, KIP-394, KIP-559, KIP-814): joins a classic group.

The response waits for the group's next generation. `coordinator.classic` has the rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kio.schema.join_group.v9.request import JoinGroupRequest
from kio.schema.join_group.v9.response import JoinGroupResponse, JoinGroupResponseMember

from barnabas.broker.network.handler import Reply, RequestContext
from barnabas.broker.network.replies import respond_when_done
from barnabas.coordinator.classic.requests import JoinRequest, JoinResult
from barnabas.protocol.errors import ApiError
from barnabas.protocol.primitive import i32, milliseconds, to_milliseconds

if TYPE_CHECKING:
    from barnabas.coordinator.groups import Groups
    from barnabas.runtime.clock import Clock

_KNOWN_MEMBER_ID_VERSION = 4
_SKIP_ASSIGNMENT_VERSION = 9


class Parts(NamedTuple):
    clock: Clock
    groups: Groups


def handle_join_group(parts: Parts, context: RequestContext, request: JoinGroupRequest) -> Reply:
    reply = parts.groups.classic.join(_asked(context, request), now_ms=parts.clock.monotonic_ms())
    return respond_when_done(reply, _respond, _refuse)


def _asked(context: RequestContext, request: JoinGroupRequest) -> JoinRequest:
    session_timeout_ms = to_milliseconds(request.session_timeout)
    rebalance_timeout_ms = to_milliseconds(request.rebalance_timeout)
    return JoinRequest(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        context.client_id or "",
        context.client_host,
        session_timeout_ms,
        # Version 0 lacks the rebalance timeout (-1), so the session timeout serves for both.
        session_timeout_ms if rebalance_timeout_ms < 0 else rebalance_timeout_ms,
        request.protocol_type,
        {protocol.name: protocol.metadata for protocol in request.protocols},
        requires_known_member_id=context.api_version >= _KNOWN_MEMBER_ID_VERSION,
        can_skip_assignment=context.api_version >= _SKIP_ASSIGNMENT_VERSION,
    )


def _respond(result: JoinResult) -> JoinGroupResponse:
    return JoinGroupResponse(
        throttle_time=milliseconds(0),
        error_code=result.error_code,
        generation_id=i32(result.generation_id),
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        leader=result.leader,
        skip_assignment=result.skip_assignment,
        member_id=result.member_id,
        members=tuple(
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata,
            )
            for member in result.members
        ),
    )


def _refuse(error: ApiError) -> JoinGroupResponse:
    return _respond(JoinResult(error.code, ""))
