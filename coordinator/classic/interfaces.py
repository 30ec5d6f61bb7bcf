"""The needs of classic requests from consumer groups: the APIs of the classic protocol serve groups of both
types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from barnabas.coordinator.classic.requests import (
    JoinRequest,
    JoinResult,
    LeftMember,
    SyncRequest,
    SyncResult,
)
from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.coordinator.group.records import AnyGroupRecord
from barnabas.coordinator.group.steps import Steps
from barnabas.protocol.errors import ErrorCode
from barnabas.runtime.completion import Completion
from barnabas.runtime.moment import Moment


class ConsumerGroups(Protocol):
    """The consumer groups. Methods other than the first three need a group that exists, and raise refusals as
    ApiError.
    """

    def exists(self, group_id: str) -> bool: ...

    def has_members(self, group_id: str) -> bool:
        """False also if there is no such group."""
        ...

    def tombstones(self, group_id: str) -> list[AnyGroupRecord]:
        """The tombstones of a group without members; empty if there is no such group. NON_EMPTY_GROUP."""
        ...

    def join(self, request: JoinRequest, reply: Completion[JoinResult], moment: Moment) -> Steps[None]: ...

    def sync(self, request: SyncRequest, reply: Completion[SyncResult], moment: Moment) -> None: ...

    def heartbeat(
        self, group_id: str, identity: MemberIdentity, generation_id: int, moment: Moment
    ) -> ErrorCode: ...

    def leave(
        self, group_id: str, identities: Sequence[MemberIdentity], moment: Moment
    ) -> Steps[list[LeftMember]]: ...
