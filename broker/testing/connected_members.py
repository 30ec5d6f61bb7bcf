"""The members of groups that have an open connection: their sessions do not end while the clock is advanced.

A client sends heartbeats in real time, so it would lose its membership with every advance that is longer than
its session.
"""

from __future__ import annotations

from typing import Final, Protocol, cast

from barnabas.broker.network.handler import ClientConnection, RequestContext
from barnabas.coordinator.groups import Groups
from barnabas.protocol.api import ApiKey
from barnabas.protocol.codec import RequestBody

_MEMBER_REQUESTS: Final = frozenset(
    {
        ApiKey.JOIN_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.SHARE_GROUP_HEARTBEAT,
    }
)
"""Every member sends one of them again and again."""


class _MemberRequest(Protocol):
    @property
    def group_id(self) -> str: ...
    @property
    def member_id(self) -> str: ...


class ConnectedMembers:
    """The connection of each member."""

    def __init__(self) -> None:
        self._connections: dict[tuple[str, str], ClientConnection] = {}

    def note(self, context: RequestContext, request: RequestBody) -> None:
        """A request was received; the member that sent it, if any, uses this connection from now on."""
        if context.api_key in _MEMBER_REQUESTS:
            member = cast("_MemberRequest", request)
            self._connections[member.group_id, member.member_id] = context.connection

    def prolong_sessions(self, groups: Groups, delay_ms: int) -> None:
        """Expect the next heartbeats of connected members later, and forget the others."""
        for key, connection in list(self._connections.items()):
            if connection.closed:
                del self._connections[key]
            else:
                groups.prolong_session(*key, delay_ms)
