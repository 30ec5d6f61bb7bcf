"""ListGroups (key 16, versions 0 to 5; KIP-518, KIP-848): the groups of all types.

The request may filter by state and by type. Filters that a version lacks are empty, which filters nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.list_groups.v5.response import ListedGroup, ListGroupsResponse

from barnabas.broker.network.handler import Reply, RequestContext
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import GroupId, milliseconds

if TYPE_CHECKING:
    from barnabas.coordinator.groups import Groups


class Parts(NamedTuple):
    groups: Groups


def handle_list_groups(parts: Parts, context: RequestContext, request: ListGroupsRequest) -> Reply:
    groups = parts.groups.list_groups(request.states_filter, request.types_filter)
    return ListGroupsResponse(
        throttle_time=milliseconds(0),
        error_code=ErrorCode.none,
        groups=tuple(
            ListedGroup(
                group_id=GroupId(group.group_id),
                protocol_type=group.protocol_type,
                group_state=group.state,
                group_type=group.group_type,
            )
            for group in groups
        ),
    )
