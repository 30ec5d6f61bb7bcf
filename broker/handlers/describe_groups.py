"""DescribeGroups (key 15, versions 0 to 6; KIP-345, KIP-430, KIP-1043): describes classic groups.

An unknown group is described as Dead; from version 6 on it also has the error GROUP_ID_NOT_FOUND. Share
groups have an API of their own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from kio.schema.describe_groups.v6.request import DescribeGroupsRequest
from kio.schema.describe_groups.v6.response import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)

from barnabas.broker.handlers.common.error_fields import error_fields
from barnabas.broker.handlers.common.group_describe import authorized_operations
from barnabas.broker.network.handler import Reply, RequestContext, Response
from barnabas.broker.network.replies import encoded_at_length
from barnabas.coordinator.classic import description
from barnabas.coordinator.classic.group import ClassicGroupState
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.primitive import GroupId, milliseconds
from barnabas.runtime.turns import Turns, in_turns

if TYPE_CHECKING:
    from barnabas.coordinator.classic.coordinator import ClassicCoordinator
    from barnabas.coordinator.groups import Groups
    from barnabas.runtime.long_work import LongWork

_NOT_FOUND_FROM = 6
_STEPS_PER_GROUP = 2
"""The steps of a turn for one group without its members."""


class Parts(NamedTuple):
    long_work: LongWork
    groups: Groups


def handle_describe_groups(parts: Parts, context: RequestContext, request: DescribeGroupsRequest) -> Reply:
    return in_turns(_answer(parts, context, request))


async def _answer(parts: Parts, context: RequestContext, request: DescribeGroupsRequest) -> Response:
    tells_not_found = context.api_version >= _NOT_FOUND_FROM
    operations = authorized_operations(asked_for=request.include_authorized_operations)
    turns, described = Turns(), list[DescribedGroup]()
    for group_id in request.groups:
        group = _describe(parts.groups.classic, group_id, tells_not_found=tells_not_found)
        if group.error_code is ErrorCode.none:
            group = replace(group, authorized_operations=operations)
        described.append(group)
        await turns.took(_STEPS_PER_GROUP + len(group.members))
    response = DescribeGroupsResponse(throttle_time=milliseconds(0), groups=tuple(described))
    return await encoded_at_length(parts.long_work, turns, context, response)


def _describe(groups: ClassicCoordinator, group_id: str, *, tells_not_found: bool) -> DescribedGroup:
    try:
        group = groups.describe(group_id)
    except ApiError as error:
        if error.code is ErrorCode.group_id_not_found:
            return _dead(group_id, error if tells_not_found else None)
        return _refused(group_id, error)
    return DescribedGroup(
        error_code=ErrorCode.none,
        group_id=GroupId(group_id),
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol,
        members=tuple(_member(member) for member in group.members),
    )


def _member(member: description.DescribedMember) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata,
        member_assignment=member.assignment,
    )


def _dead(group_id: str, error: ApiError | None) -> DescribedGroup:
    return DescribedGroup(
        **error_fields(error),
        group_id=GroupId(group_id),
        group_state=ClassicGroupState.DEAD.value,
        protocol_type="",
        protocol_data="",
        members=(),
    )


def _refused(group_id: str, error: ApiError) -> DescribedGroup:
    return DescribedGroup(
        error_code=error.code,
        group_id=GroupId(group_id),
        group_state="",
        protocol_type="",
        protocol_data="",
        members=(),
    )
