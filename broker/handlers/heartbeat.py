"""Heartbeat (key 12, versions 0 to 4; KIP-345): keeps a member in its classic group.

The error of the response tells the member to join again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.heartbeat.v4.response import HeartbeatResponse

from barnabas.broker.network.handler import Reply, RequestContext
from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.protocol.primitive import milliseconds

if TYPE_CHECKING:
    from barnabas.coordinator.groups import Groups
    from barnabas.runtime.clock import Clock


class Parts(NamedTuple):
    clock: Clock
    groups: Groups


def handle_heartbeat(parts: Parts, context: RequestContext, request: HeartbeatRequest) -> Reply:
    error_code = parts.groups.classic.heartbeat(
        request.group_id,
        MemberIdentity(request.member_id, request.group_instance_id),
        request.generation_id,
        now_ms=parts.clock.monotonic_ms(),
    )
    return HeartbeatResponse(throttle_time=milliseconds(0), error_code=error_code)
