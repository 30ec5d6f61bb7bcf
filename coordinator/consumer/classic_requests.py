"""What reaches consumer groups by the APIs of classic ones: their members of the classic protocol."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.coordinator.classic.membership import JoinReply, SyncReply
from barnabas.coordinator.classic.requests import (
    UNKNOWN_MEMBER_ID,
    JoinRequest,
    JoinResult,
    LeftMember,
    Moment,
    SyncRequest,
)
from barnabas.coordinator.consumer.classic_members import ClassicMembers
from barnabas.coordinator.consumer.record_factory import group_tombstones
from barnabas.coordinator.consumer.registry import ConsumerRegistry
from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.coordinator.group.records import AnyGroupRecord
from barnabas.coordinator.group.steps import Steps
from barnabas.protocol.errors import ApiError, ErrorCode


class ClassicRequests:
    """The `ConsumerGroups` of the classic coordinator."""

    def __init__(self, registry: ConsumerRegistry, members: ClassicMembers) -> None:
        self._registry = registry
        self._members = members

    def exists(self, group_id: str) -> bool:
        return self._registry.get(group_id) is not None

    def has_members(self, group_id: str) -> bool:
        group = self._registry.get(group_id)
        return group is not None and bool(group.members)

    def tombstones(self, group_id: str) -> list[AnyGroupRecord]:
        group = self._registry.get(group_id)
        if group is None:
            return []
        if group.members:
            raise ApiError(ErrorCode.non_empty_group, f"Group {group_id} has members.")
        return [*group_tombstones(group, ())]

    def join(self, request: JoinRequest, reply: JoinReply, moment: Moment) -> Steps[None]:
        try:
            yield from self._members.join(self._registry.existing(request.group_id), request, reply, moment)
        except ApiError as error:
            # Kafka names no member in these refusals.
            reply.complete(JoinResult(error.code, UNKNOWN_MEMBER_ID))

    def sync(self, request: SyncRequest, reply: SyncReply, moment: Moment) -> None:
        self._members.sync(self._registry.existing(request.group_id), request, reply, moment)

    def heartbeat(
        self, group_id: str, identity: MemberIdentity, generation_id: int, moment: Moment
    ) -> ErrorCode:
        return self._members.heartbeat(self._registry.existing(group_id), identity, generation_id, moment)

    def leave(
        self, group_id: str, identities: Sequence[MemberIdentity], moment: Moment
    ) -> Steps[list[LeftMember]]:
        return (yield from self._members.leave(self._registry.existing(group_id), identities, moment))
