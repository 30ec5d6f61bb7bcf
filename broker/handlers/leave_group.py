"""LeaveGroup (key 13, versions 0 to 5; KIP-345, KIP-800): members leave a classic group.

`Single` is versions 0 to 2, with one member, whose error is that of the response. `Batch` is versions 3 to 5,
with several members and an error for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from kio.schema.leave_group.v2.request import LeaveGroupRequest as LeaveGroupRequestSingle
from kio.schema.leave_group.v2.response import LeaveGroupResponse as LeaveGroupResponseSingle
from kio.schema.leave_group.v5.request import LeaveGroupRequest as LeaveGroupRequestBatch
from kio.schema.leave_group.v5.response import LeaveGroupResponse as LeaveGroupResponseBatch
from kio.schema.leave_group.v5.response import MemberResponse

from barnabas.broker.network.handler import Reply, RequestContext
from barnabas.broker.network.replies import respond_when_done
from barnabas.coordinator.classic.requests import LeftMember
from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.primitive import milliseconds

if TYPE_CHECKING:
    from barnabas.coordinator.groups import Groups
    from barnabas.runtime.clock import Clock

_BATCH_FROM = 3


class Parts(NamedTuple):
    clock: Clock
    groups: Groups


def handle_leave_group(
    parts: Parts, context: RequestContext, request: LeaveGroupRequestSingle | LeaveGroupRequestBatch
) -> Reply:
    is_batch = context.api_version >= _BATCH_FROM
    if is_batch:
        members = cast("LeaveGroupRequestBatch", request).members
        identities = [MemberIdentity(member.member_id, member.group_instance_id) for member in members]
    else:
        identities = [MemberIdentity(cast("LeaveGroupRequestSingle", request).member_id, None)]
    reply = parts.groups.classic.leave(request.group_id, identities, now_ms=parts.clock.monotonic_ms())
    if is_batch:
        return respond_when_done(reply, _respond, _refuse)
    return respond_when_done(reply, _respond_to_one, _refuse_one)


def _respond(left: Sequence[LeftMember]) -> LeaveGroupResponseBatch:
    return LeaveGroupResponseBatch(
        throttle_time=milliseconds(0),
        error_code=ErrorCode.none,
        members=tuple(
            MemberResponse(
                member_id=member.identity.member_id,
                group_instance_id=member.identity.group_instance_id,
                error_code=member.error_code,
            )
            for member in left
        ),
    )


def _refuse(error: ApiError) -> LeaveGroupResponseBatch:
    return LeaveGroupResponseBatch(throttle_time=milliseconds(0), error_code=error.code, members=())


def _respond_to_one(left: Sequence[LeftMember]) -> LeaveGroupResponseSingle:
    return LeaveGroupResponseSingle(throttle_time=milliseconds(0), error_code=left[0].error_code)


def _refuse_one(error: ApiError) -> LeaveGroupResponseSingle:
    return LeaveGroupResponseSingle(throttle_time=milliseconds(0), error_code=error.code)
