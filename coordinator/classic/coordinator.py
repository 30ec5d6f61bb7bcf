"""Classic groups: members' requests, administration, timers. See `GroupCoordinator`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar
from uuid import UUID

from barnabas.coordinator.classic.description import DescribedGroup, describe_group
from barnabas.coordinator.classic.group import ClassicGroup, ClassicGroupState
from barnabas.coordinator.classic.interfaces import ConsumerGroups
from barnabas.coordinator.classic.membership import JoinReply, Membership, SyncReply
from barnabas.coordinator.classic.offsets import ClassicOffsetRules
from barnabas.coordinator.classic.protocol_change import ProtocolChange
from barnabas.coordinator.classic.record_factory import deleted_group, new_group
from barnabas.coordinator.classic.registry import ClassicRegistry
from barnabas.coordinator.classic.requests import (
    UNKNOWN_MEMBER_ID,
    JoinRequest,
    JoinResult,
    LeftMember,
    SyncRequest,
    SyncResult,
    has_too_long_names,
)
from barnabas.coordinator.classic.settings import ClassicSettings
from barnabas.coordinator.group.description import ListedGroup
from barnabas.coordinator.group.group_coordinator import GroupCoordinator
from barnabas.coordinator.group.group_operations import GroupOperations
from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.coordinator.group.record_names import checked_group_id, is_too_long, storable_group_id
from barnabas.coordinator.group.records import AnyGroupRecord
from barnabas.coordinator.group.steps import Steps
from barnabas.coordinator.group.timers import GroupTimers, Timer, TimerKind
from barnabas.coordinator.replay.steps import Operation, Write
from barnabas.protocol.classic_group_records import ClassicGroupRecord
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.runtime.completion import Completion
from barnabas.runtime.moment import Moment, MonotonicOf

_Result = TypeVar("_Result")


class ClassicCoordinator(GroupCoordinator[ClassicGroup]):
    """All classic groups of this broker."""

    GROUP_TYPE = "classic"

    def __init__(
        self,
        *,
        operations: GroupOperations,
        settings: ClassicSettings,
        wall_ms: Callable[[], int],
        new_uuid: Callable[[], UUID],
        consumer_groups: ConsumerGroups,
        other_group_type: Callable[[str], str | None],
        on_deadline: Callable[[], None],
    ) -> None:
        """`other_group_type` returns the type of a group of that id that is not a classic one, or None;
        `on_deadline` is called when `next_deadline_ms` may have moved.
        """
        timers = GroupTimers()
        self._registry = ClassicRegistry(
            self.GROUP_TYPE, max_groups=settings.max_groups, other_group_type=other_group_type
        )
        super().__init__(operations, self._registry, timers, on_deadline)
        self._settings = settings
        self._wall_ms = wall_ms
        self._membership = Membership(timers, settings, new_uuid)
        self._rebalance = self._membership.rebalance
        self._consumer_groups = consumer_groups
        self.protocol_change = ProtocolChange(self._registry, self._rebalance)
        """The part that the consumer groups' coordinator calls."""
        self.offset_rules = ClassicOffsetRules(self._registry, self._rebalance)
        """The part that the offsets' coordinator calls."""

    # Replay

    def replay(self, record: ClassicGroupRecord, monotonic_of: MonotonicOf) -> None:
        """Apply a record that was loaded or appended."""
        self._registry.replay(record, monotonic_of)

    def replay_commit(self, group_id: str, committed_at: Moment) -> None:
        """An offset was committed; without a group it creates a simple one."""
        self._registry.replay_commit(group_id, committed_at)

    def drop_simple(self, group_id: str) -> None:
        """A group of another type takes the place of a group that no member has joined."""
        self._registry.drop_simple(group_id)

    # Members

    def join(self, request: JoinRequest, *, now_ms: int) -> JoinReply:
        """JoinGroup. Its errors are in the result."""
        reply = JoinReply()
        code = self._check_join(request)
        if code is not ErrorCode.none:
            reply.complete(JoinResult(code, request.member_id))
            return reply
        operation = partial(self._join, request, reply, now_ms)
        self._submit(request.group_id, operation, reply, lambda code: JoinResult(code, request.member_id))
        return reply

    def _check_join(self, request: JoinRequest) -> ErrorCode:
        session_ms = request.session_timeout_ms
        if not request.group_id or is_too_long(request.group_id):
            return ErrorCode.invalid_group_id
        if has_too_long_names(request):
            return ErrorCode.invalid_request
        if not self._settings.session_timeout_ms_min <= session_ms <= self._settings.session_timeout_ms_max:
            return ErrorCode.invalid_session_timeout
        return ErrorCode.none

    def _join(self, request: JoinRequest, reply: JoinReply, now_ms: int) -> Steps[None]:
        moment = self._moment(now_ms)
        group = self._registry.get(request.group_id)
        if group is None and self._consumer_groups.has_members(request.group_id):
            yield from self._consumer_groups.join(request, reply, moment)
            return
        if group is None:
            is_empty = self._consumer_groups.exists(request.group_id)
            if self._registry.is_of_another_type(request.group_id) and not is_empty:
                raise ApiError(ErrorCode.inconsistent_group_protocol, "The group is of another type.")
            if request.member_id != UNKNOWN_MEMBER_ID:
                raise ApiError(ErrorCode.unknown_member_id, "There is no such group.")
            group = yield from self._new_group(request.group_id, moment)
        yield from self._membership.join(group, request, reply, moment)

    def _new_group(self, group_id: str, moment: Moment) -> Steps[ClassicGroup]:
        """A new group; an empty consumer group of that id is deleted."""
        self._registry.check_room()
        yield Write([*self._consumer_groups.tombstones(group_id), new_group(group_id, moment.wall_ms)])
        return self._registry.existing(group_id)

    def sync(self, request: SyncRequest, *, now_ms: int) -> SyncReply:
        """SyncGroup. Its errors are in the result."""
        reply = SyncReply()
        if not request.group_id:
            reply.complete(SyncResult(ErrorCode.invalid_group_id))
            return reply
        operation = partial(self._sync, request, reply, now_ms)
        self._submit(request.group_id, operation, reply, SyncResult)
        return reply

    def _sync(self, request: SyncRequest, reply: SyncReply, now_ms: int) -> Steps[None]:
        moment = self._moment(now_ms)
        if self._consumer_groups.has_members(request.group_id):
            self._consumer_groups.sync(request, reply, moment)
            return
        yield from self._membership.sync(self._members_group(request.group_id), request, reply, moment)

    def heartbeat(
        self, group_id: str, identity: MemberIdentity, generation_id: int, *, now_ms: int
    ) -> ErrorCode:
        """Heartbeat's code. It is `none` also while groups are loaded, so that members stay."""
        if not group_id:
            return ErrorCode.invalid_group_id
        if not self._operations.of_key(group_id).loaded:
            return ErrorCode.none
        moment = self._moment(now_ms)
        try:
            if self._consumer_groups.exists(group_id):
                code = self._consumer_groups.heartbeat(group_id, identity, generation_id, moment)
                self._on_deadline()
                return code
            group = self._members_group(group_id)
            return self._membership.heartbeat(group, identity, generation_id, moment)
        except ApiError as error:
            return error.code

    def leave(
        self, group_id: str, identities: Sequence[MemberIdentity], *, now_ms: int
    ) -> Completion[list[LeftMember]]:
        """LeaveGroup: an outcome for each member, UNKNOWN_MEMBER_ID if there is no such group."""
        return self._run(group_id, partial(self._leave, group_id, identities, now_ms))

    def _leave(
        self, group_id: str, identities: Sequence[MemberIdentity], now_ms: int
    ) -> Steps[list[LeftMember]]:
        group = self._registry.get(checked_group_id(group_id))
        if self._consumer_groups.exists(group_id):
            moment = self._moment(now_ms)
            return (yield from self._consumer_groups.leave(group_id, identities, moment))
        if group is None:
            return [LeftMember(identity, ErrorCode.unknown_member_id) for identity in identities]
        return (yield from self._membership.leave(group, identities, self._moment(now_ms)))

    # Administration

    def describe(self, group_id: str) -> DescribedGroup:
        """DescribeGroups of one group: INVALID_GROUP_ID (too long), COORDINATOR_LOAD_IN_PROGRESS,
        GROUP_ID_NOT_FOUND.
        """
        self._operations.check_loaded(storable_group_id(group_id))
        return describe_group(self._registry.existing(group_id))

    def tombstones(self, group_id: str) -> list[ClassicGroupRecord]:
        """The records that delete a group without members: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP."""
        group = self._registry.existing(group_id)
        if group.state is not ClassicGroupState.EMPTY:
            raise ApiError(ErrorCode.non_empty_group, f"Group {group_id} has members.")
        return [deleted_group(group_id)]

    # See `GroupCoordinator`

    def _begin_sessions(self, group: ClassicGroup, now_ms: int) -> None:
        for member in group.members.values():
            self._rebalance.expect_heartbeat(group, member, now_ms)

    def _end_waits(self, group: ClassicGroup) -> None:
        self._rebalance.end_waits(group, ErrorCode.not_coordinator)

    def _listed(self, group: ClassicGroup) -> ListedGroup:
        protocol_type = group.protocol_type or ""
        return ListedGroup(
            group.group_id, protocol_type, group.state.value, self.GROUP_TYPE, len(group.members)
        )

    def _timed_out(self, group: ClassicGroup, timer: Timer, now_ms: int) -> Steps[None]:
        moment = self._moment(now_ms)
        if timer.kind is TimerKind.SESSION:
            return self._membership.session_ended(group, timer.member_id, moment)
        if timer.kind is TimerKind.JOIN:
            return self._rebalance.joining_timed_out(group, moment)
        assert timer.kind is TimerKind.SYNC
        return self._rebalance.syncing_timed_out(group, moment)

    # Operations

    def _submit(
        self,
        group_id: str,
        operation: Operation[AnyGroupRecord, None],
        reply: Completion[_Result],
        refuse: Callable[[ErrorCode], _Result],
    ) -> None:
        """Run an operation that completes `reply` itself, now or later. If it fails, `refuse` makes the
        answer.
        """
        self._run(group_id, operation).when_done(partial(_pass_failure_on, reply, refuse))

    def _members_group(self, group_id: str) -> ClassicGroup:
        group = self._registry.get(group_id)
        if group is None:
            raise ApiError(ErrorCode.unknown_member_id, f"Group {group_id} not found.")
        return group

    def _moment(self, now_ms: int) -> Moment:
        return Moment(now_ms, self._wall_ms())


def _pass_failure_on(
    reply: Completion[_Result], refuse: Callable[[ErrorCode], _Result], ended: Completion[None]
) -> None:
    if ended.error is None or reply.done:
        return
    if isinstance(ended.error, ApiError):
        code = ended.error.code
        reply.end_with(lambda: Completion.of(refuse(code)))
    else:
        reply.fail(ended.error)
