"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of classic groups: what each request may do, and does.

Replies to JoinGroup and SyncGroup come when the group has got so far. The checks and their order are Apache
Kafka 4.3's (GroupMetadataManager.classicGroup*).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from barnabas.coordinator.classic.group import ClassicGroup, ClassicGroupState
from barnabas.coordinator.classic.member import ClassicMember
from barnabas.coordinator.classic.rebalance import Rebalance
from barnabas.coordinator.classic.record_factory import group_metadata
from barnabas.coordinator.classic.requests import (
    UNKNOWN_MEMBER_ID,
    JoinRequest,
    JoinResult,
    LeftMember,
    Moment,
    SyncRequest,
    SyncResult,
)
from barnabas.coordinator.classic.settings import NEW_MEMBER_JOIN_TIMEOUT_MS, ClassicSettings
from barnabas.coordinator.classic.timers import ClassicTimers
from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.coordinator.group.steps import Steps
from barnabas.coordinator.replay.steps import Write
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.runtime.completion import Completion

JoinReply = Completion[JoinResult]
SyncReply = Completion[SyncResult]


class Membership:
    """Members' requests to groups that exist, or are about to."""

    def __init__(
        self,
        timers: ClassicTimers,
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
        """Take a member in, or back. `reply` is completed now, or when the group's next generation begins."""
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
                # Such an id was given to a dynamic member: two members would have one instance id.
                reply.complete(JoinResult(ErrorCode.invalid_request, request.member_id))
                return
            yield from self._add(group, request, request.member_id, reply, moment)
        else:
            yield from self._join_again(group, request, reply, moment)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """Whether the group may have this member. While members join, those that do count, and not those that
        may never come back."""
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
            yield from self._replace_static(group, request, existing_id, member_id, reply, moment)
        elif request.group_instance_id is None and request.requires_known_member_id:
            group.pending_joins.add(member_id)
            deadline_ms = moment.now_ms + request.session_timeout_ms
            self._timers.expect_heartbeat(group.group_id, member_id, deadline_ms)
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
        """Whether the member only asks again for what it was told, or should have been.

        A leader of a stable group that joins wants a rebalance: something else has changed that it knows of.
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
        self._timers.expect_heartbeat(group.group_id, member_id, deadline_ms)
        yield from self.rebalance.begin_or_go_on(group, moment)

    # Static members that come back (KIP-345)

    def _replace_static(
        self,
        group: ClassicGroup,
        request: JoinRequest,
        existing_id: str,
        member_id: str,
        reply: JoinReply,
        moment: Moment,
    ) -> Steps[None]:
        """The member is back under a new id. A stable group stays as it is, if its protocol does."""
        old_leader = group.leader or ""
        member = group.replace_static(existing_id, member_id)
        self._timers.end_session(group.group_id, existing_id)
        self.rebalance.expect_heartbeat(group, member, moment.now_ms)
        before = (member.session_timeout_ms, member.rebalance_timeout_ms, member.protocols)
        _update(member, request, reply)
        if group.state is ClassicGroupState.COMPLETING_REBALANCE:
            # The leader may know the old id already, and would assign to that.
            yield from self.rebalance.begin(group, moment)
        elif group.state is ClassicGroupState.PREPARING_REBALANCE:
            yield from self.rebalance.go_on(group, moment)
        elif group.select_protocol() != group.protocol_name:
            yield from self.rebalance.begin(group, moment)
        else:
            try:
                yield Write([group_metadata(group, group.assignment())])
            except ApiError as error:
                member.session_timeout_ms, member.rebalance_timeout_ms, member.protocols = before
                self._restore_static(group, member, existing_id, error, moment)
                return
            member.answer_join(_result_without_rebalance(group, member, request, old_leader))

    def _restore_static(
        self, group: ClassicGroup, member: ClassicMember, old_id: str, error: ApiError, moment: Moment
    ) -> None:
        reply, member.awaits_join = member.awaits_join, None
        self._timers.end_session(group.group_id, member.member_id)
        group.restore_static(member.member_id, old_id)
        self.rebalance.expect_heartbeat(group, member, moment.now_ms)
        if reply is not None:
            reply.complete(JoinResult(error.code, UNKNOWN_MEMBER_ID))

    # SyncGroup, Heartbeat, LeaveGroup

    def sync(
        self, group: ClassicGroup, request: SyncRequest, reply: SyncReply, moment: Moment
    ) -> Steps[None]:
        """A member asks for its assignment; the leader brings all. `reply` comes when the leader has."""
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
            reply.complete(
                SyncResult(ErrorCode.none, group.protocol_type, group.protocol_name, member.assignment)
            )
            return
        # Who asks again gives up its first request: its connection is gone, or its patience.
        member.answer_sync(SyncResult(ErrorCode.rebalance_in_progress))
        member.awaits_sync = reply
        if group.leader == member.member_id:
            yield from self.rebalance.settle(group, dict(request.assignments), moment)

    def heartbeat(
        self, group: ClassicGroup, identity: MemberIdentity, generation_id: int, moment: Moment
    ) -> ErrorCode:
        """The code to answer with: none, or REBALANCE_IN_PROGRESS. Raises ApiError for a stranger."""
        member = group.check_member(identity.member_id, identity.group_instance_id)
        _check_generation(group, generation_id)
        self.rebalance.expect_heartbeat(group, member, moment.now_ms)
        if group.state is ClassicGroupState.PREPARING_REBALANCE:
            return ErrorCode.rebalance_in_progress
        return ErrorCode.none

    def leave(
        self, group: ClassicGroup, identities: Sequence[MemberIdentity], moment: Moment
    ) -> Steps[list[LeftMember]]:
        """Remove members, each by itself: their own will, or an administrator's by instance id."""
        left = [LeftMember(identity, self._leave_one(group, identity)) for identity in identities]
        has_left = any(one.error_code is ErrorCode.none for one in left)
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
        """No heartbeat has come in time; who waits for us needn't send any."""
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
    # Who asks again gives up its first request.
    member.answer_join(JoinResult(ErrorCode.rebalance_in_progress, member.member_id))
    member.session_timeout_ms = request.session_timeout_ms
    member.rebalance_timeout_ms = request.rebalance_timeout_ms
    member.protocols = request.protocols
    member.awaits_join = reply


def _result_without_rebalance(
    group: ClassicGroup, member: ClassicMember, request: JoinRequest, old_leader: str
) -> JoinResult:
    """What a static member is told that came back to a stable group.

    Before version 9 it must not take itself for the leader, or it would assign anew: it is named the old one.
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
