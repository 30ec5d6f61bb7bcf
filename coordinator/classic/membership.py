"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of classic groups: the checks of each request, and its
effect.

A JoinGroup is answered when the next generation begins, a SyncGroup when the leader's assignment is in the
log. The checks and their order are Apache Kafka 4.3's (GroupMetadataManager.classicGroup*).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from barnabas.coordinator.classic.group import ClassicGroup, ClassicGroupState
from barnabas.coordinator.classic.member import ClassicMember
from barnabas.coordinator.classic.rebalance import Rebalance
from barnabas.coordinator.classic.record_factory import generation_with_returned_member
from barnabas.coordinator.classic.requests import (
    UNKNOWN_MEMBER_ID,
    JoinRequest,
    JoinResult,
    LeftMember,
    SyncRequest,
    SyncResult,
)
from barnabas.coordinator.classic.settings import NEW_MEMBER_JOIN_TIMEOUT_MS, ClassicSettings
from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.coordinator.group.steps import Steps
from barnabas.coordinator.group.timers import GroupTimers, Timer, TimerKind
from barnabas.coordinator.replay.steps import Write
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.runtime.completion import Completion
from barnabas.runtime.moment import Moment

JoinReply = Completion[JoinResult]
SyncReply = Completion[SyncResult]


class Membership:
    """Members' requests to classic groups that exist."""

    def __init__(
        self,
        timers: GroupTimers,
        settings: ClassicSettings,
        new_uuid: Callable[[], object],
    ) -> None:
        """`new_uuid` makes member ids unique."""
        self.rebalance = Rebalance(timers, settings)
        self._timers = timers
        self._settings = settings
        self._new_uuid = new_uuid

    # JoinGroup

    def join(
        self, group: ClassicGroup, request: JoinRequest, reply: JoinReply, moment: Moment
    ) -> Steps[None]:
        """Let a member join, or join again. `reply` ends at once, or when the next generation begins."""
        if not self._has_room(group, request.member_id):
            self.rebalance.forget(group, request.member_id)
            reply.complete(JoinResult(ErrorCode.group_max_size_reached, UNKNOWN_MEMBER_ID))
            yield from self.rebalance.go_on(group, moment)
        elif not group.supports(request.protocol_type, request.protocols):
            reply.complete(JoinResult(ErrorCode.inconsistent_group_protocol, request.member_id))
        elif request.member_id == UNKNOWN_MEMBER_ID:
            yield from self._join_anew(group, request, reply, moment)
        elif request.member_id in group.pending_joins:
            if request.group_instance_id is not None:
                # The id was given to a dynamic member, which has no instance id.
                reply.complete(JoinResult(ErrorCode.invalid_request, request.member_id))
                return
            yield from self._add(group, request, request.member_id, reply, moment)
        else:
            yield from self._join_again(group, request, reply, moment)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """Whether the group may have this member. While members join, only those that have joined count: the
        others may never come back.
        """
        member = group.members.get(member_id)
        if group.state is ClassicGroupState.EMPTY:
            return True
        if group.state is ClassicGroupState.PREPARING_REBALANCE:
            waits = member is not None and member.awaits_join is not None
            return waits or group.awaiting_join_count < self._settings.max_size
        return member is not None or len(group.members) < self._settings.max_size

    def _join_anew(
        self, group: ClassicGroup, request: JoinRequest, reply: JoinReply, moment: Moment
    ) -> Steps[None]:
        prefix = request.group_instance_id if request.group_instance_id is not None else request.client_id
        member_id = f"{prefix}-{self._new_uuid()}"
        existing_id = group.static_member_id(request.group_instance_id)
        if existing_id is not None:
            yield from self._return(group, request, existing_id, member_id, reply, moment)
        elif request.group_instance_id is None and request.requires_known_member_id:
            group.pending_joins.add(member_id)
            deadline_ms = moment.now_ms + request.session_timeout_ms
            self._timers.restart(Timer(TimerKind.SESSION, group.group_id, member_id), deadline_ms)
            reply.complete(JoinResult(ErrorCode.member_id_required, member_id))
        else:
            yield from self._add(group, request, member_id, reply, moment)

    def _join_again(
        self, group: ClassicGroup, request: JoinRequest, reply: JoinReply, moment: Moment
    ) -> Steps[None]:
        try:
            member = group.check_member(request.member_id, request.group_instance_id)
        except ApiError as error:
            reply.complete(JoinResult(error.code, request.member_id))
            return
        if self._changes_nothing(group, member, request):
            reply.complete(group.result_for(member))
        else:
            _update(member, request, reply)
            yield from self.rebalance.begin_or_go_on(group, moment)

    def _changes_nothing(self, group: ClassicGroup, member: ClassicMember, request: JoinRequest) -> bool:
        """Whether the member only repeats a JoinGroup that was answered.

        A leader of a stable group that joins wants a rebalance: it knows of a change that the group does not.
        """
        if group.state is ClassicGroupState.PREPARING_REBALANCE:
            return False
        leads_stable = group.state is ClassicGroupState.STABLE and group.leader == member.member_id
        return not leads_stable and list(member.protocols.items()) == list(request.protocols.items())

    def _add(
        self, group: ClassicGroup, request: JoinRequest, member_id: str, reply: JoinReply, moment: Moment
    ) -> Steps[None]:
        member = ClassicMember(
            member_id=member_id,
            group_instance_id=request.group_instance_id,
            client_id=request.client_id,
            client_host=request.client_host,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            protocols=request.protocols,
            awaits_join=reply,
            is_new=True,
        )
        group.joined_meanwhile = True
        group.add(member, request.protocol_type)
        deadline_ms = moment.now_ms + NEW_MEMBER_JOIN_TIMEOUT_MS
        self._timers.restart(Timer(TimerKind.SESSION, group.group_id, member_id), deadline_ms)
        yield from self.rebalance.begin_or_go_on(group, moment)

    # Static members that come back (KIP-345)

    def _return(
        self,
        group: ClassicGroup,
        request: JoinRequest,
        old_id: str,
        member_id: str,
        reply: JoinReply,
        moment: Moment,
    ) -> Steps[None]:
        """A static member has a new id. A stable group needs no rebalance if it keeps its protocol."""
        if group.state is ClassicGroupState.STABLE and group.keeps_protocol(old_id, request.protocols):
            yield from self._return_to_stable(group, request, old_id, member_id, reply, moment)
            return
        # A leader that already knows the old id would assign to that, so the group joins again.
        member = group.replace_static(old_id, member_id)
        self.rebalance.end_session(group, old_id)
        self.rebalance.expect_heartbeat(group, member, moment.now_ms)
        _update(member, request, reply)
        yield from self.rebalance.begin_or_go_on(group, moment)

    def _return_to_stable(
        self,
        group: ClassicGroup,
        request: JoinRequest,
        old_id: str,
        member_id: str,
        reply: JoinReply,
        moment: Moment,
    ) -> Steps[None]:
        old_leader = group.leader or ""
        try:
            yield Write([generation_with_returned_member(group, old_id, member_id, request)])
        except ApiError as error:
            reply.complete(JoinResult(error.code, UNKNOWN_MEMBER_ID))
            return
        member = group.members[member_id]
        member.protocols = request.protocols
        self.rebalance.end_session(group, old_id)
        self.rebalance.expect_heartbeat(group, member, moment.now_ms)
        reply.complete(_result_without_rebalance(group, member, request, old_leader))

    # SyncGroup, Heartbeat, LeaveGroup

    def sync(
        self, group: ClassicGroup, request: SyncRequest, reply: SyncReply, moment: Moment
    ) -> Steps[None]:
        """A member asks for its assignment; the leader's request has the assignment of all. `reply` ends when
        that is in the log.
        """
        try:
            member = group.check_member(request.member_id, request.group_instance_id)
            _check_generation(group, request.generation_id)
            _check_protocol(group, request)
        except ApiError as error:
            reply.complete(SyncResult(error.code))
            return
        if group.state is ClassicGroupState.PREPARING_REBALANCE:
            reply.complete(SyncResult(ErrorCode.rebalance_in_progress))
            return
        self.rebalance.note_sync(group, member.member_id)
        if group.state is ClassicGroupState.STABLE:
            reply.complete(group.sync_result(member))
            return
        # The member has sent another request: it no longer waits for the first one.
        member.answer_sync(SyncResult(ErrorCode.rebalance_in_progress))
        member.awaits_sync = reply
        if group.leader == member.member_id:
            yield from self.rebalance.settle(group, dict(request.assignments), moment)

    def heartbeat(
        self, group: ClassicGroup, identity: MemberIdentity, generation_id: int, moment: Moment
    ) -> ErrorCode:
        """The code of the answer: none, or REBALANCE_IN_PROGRESS. ApiError for an unknown member."""
        member = group.check_member(identity.member_id, identity.group_instance_id)
        _check_generation(group, generation_id)
        self.rebalance.expect_heartbeat(group, member, moment.now_ms)
        if group.state is ClassicGroupState.PREPARING_REBALANCE:
            return ErrorCode.rebalance_in_progress
        return ErrorCode.none

    def leave(
        self, group: ClassicGroup, identities: Sequence[MemberIdentity], moment: Moment
    ) -> Steps[list[LeftMember]]:
        """Remove members that leave, or that an administrator names by instance id; each has an outcome."""
        left = [LeftMember(identity, self._leave_one(group, identity)) for identity in identities]
        has_left = any(member.error_code is ErrorCode.none for member in left)
        if has_left and group.state is not ClassicGroupState.EMPTY:
            yield from self.rebalance.begin_or_go_on(group, moment)
        return left

    def _leave_one(self, group: ClassicGroup, identity: MemberIdentity) -> ErrorCode:
        member_id = identity.member_id
        if member_id == UNKNOWN_MEMBER_ID:
            member_id = group.static_member_id(identity.group_instance_id) or UNKNOWN_MEMBER_ID
        elif member_id not in group.pending_joins:
            try:
                group.check_member(member_id, identity.group_instance_id)
            except ApiError as error:
                return error.code
        if member_id == UNKNOWN_MEMBER_ID:
            return ErrorCode.unknown_member_id
        self.rebalance.forget(group, member_id)
        return ErrorCode.none

    def session_ended(self, group: ClassicGroup, member_id: str, moment: Moment) -> Steps[None]:
        """No heartbeat has come in time. A member that waits for an answer need not send any."""
        member = group.members.get(member_id)
        if member is not None and member.is_excused:
            return
        if member is None and member_id not in group.pending_joins:
            return
        self.rebalance.forget(group, member_id)
        if member is None:
            yield from self.rebalance.go_on(group, moment)
        elif group.state is not ClassicGroupState.EMPTY:
            yield from self.rebalance.begin_or_go_on(group, moment)


def _update(member: ClassicMember, request: JoinRequest, reply: JoinReply) -> None:
    # The member no longer waits for its first request.
    member.answer_join(JoinResult(ErrorCode.rebalance_in_progress, member.member_id))
    member.session_timeout_ms = request.session_timeout_ms
    member.rebalance_timeout_ms = request.rebalance_timeout_ms
    member.protocols = request.protocols
    member.awaits_join = reply


def _result_without_rebalance(
    group: ClassicGroup, member: ClassicMember, request: JoinRequest, old_leader: str
) -> JoinResult:
    """The answer to a static member that came back to a stable group.

    Before version 9 it must not learn that it leads, because it would assign again: it gets the old leader's
    id.
    """
    result = group.result_for(member)
    if request.can_skip_assignment:
        return result._replace(skip_assignment=group.leader == member.member_id)
    return result._replace(leader=old_leader, members=())


def _check_generation(group: ClassicGroup, generation_id: int) -> None:
    if generation_id != group.generation_id:
        raise ApiError(ErrorCode.illegal_generation, f"The generation is {group.generation_id}.")


def _check_protocol(group: ClassicGroup, request: SyncRequest) -> None:
    pairs = ((request.protocol_type, group.protocol_type), (request.protocol_name, group.protocol_name))
    if any(None not in pair and pair[0] != pair[1] for pair in pairs):
        raise ApiError(ErrorCode.inconsistent_group_protocol, "The group has another protocol.")
