"""From one generation of a classic group to the next: which members are awaited, and for how long.

A rebalance begins when a member joins, leaves or changes. Members learn of it by their next heartbeat and
join again; each JoinGroup waits. When all have joined, or the slowest member's rebalance timeout is over, the
generation begins: every JoinGroup is answered, the leader's with all members. Each member then sends
SyncGroup, which waits for the leader's. The leader's assignment is appended; its replay makes the group
stable, and then every SyncGroup is answered. A member that does not sync within the rebalance timeout is
removed, and another rebalance begins.

A group that was empty waits for `group.initial.rebalance.delay.ms` after each new member, up to the rebalance
timeout, because the members of a group tend to start together.
"""

from __future__ import annotations

from barnabas.coordinator.classic.group import ClassicGroup, ClassicGroupState
from barnabas.coordinator.classic.member import ClassicMember
from barnabas.coordinator.classic.record_factory import empty_generation, stable_generation
from barnabas.coordinator.classic.requests import SyncResult
from barnabas.coordinator.classic.settings import ClassicSettings
from barnabas.coordinator.group.steps import Steps
from barnabas.coordinator.group.timers import GroupTimers, Timer, TimerKind
from barnabas.coordinator.replay.steps import Write
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.runtime.moment import Moment, written_at

_MAY_REBALANCE = frozenset(
    {ClassicGroupState.EMPTY, ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.STABLE}
)
_HAS_GENERATION = frozenset({ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.STABLE})

ABSENT_WAIT_MS_MIN = 500
"""The least time that the group waits again when none of its static members has joined."""


class Rebalance:
    """Takes groups through their rebalances. Each method is a step of an operation on one group."""

    def __init__(self, timers: GroupTimers, settings: ClassicSettings) -> None:
        self._timers = timers
        self._settings = settings

    def expect_heartbeat(self, group: ClassicGroup, member: ClassicMember, now_ms: int) -> None:
        """Give the member a whole session from now on."""
        timer = Timer(TimerKind.SESSION, group.group_id, member.member_id)
        self._timers.restart(timer, now_ms + member.session_timeout_ms)

    def begin_or_go_on(self, group: ClassicGroup, moment: Moment) -> Steps[None]:
        """Members have changed: begin a rebalance, or end the joining phase if no other member is awaited."""
        if group.state in _MAY_REBALANCE:
            yield from self.begin(group, moment)
        else:
            yield from self.go_on(group, moment)

    def begin(self, group: ClassicGroup, moment: Moment) -> Steps[None]:
        """All are to join. A SyncGroup that waits is answered with REBALANCE_IN_PROGRESS."""
        if group.state is ClassicGroupState.COMPLETING_REBALANCE:
            self._refuse_syncs(group, ErrorCode.rebalance_in_progress, moment)
        group.pending_syncs.clear()
        self._timers.cancel(Timer(TimerKind.SYNC, group.group_id))
        group.is_initial = group.state is ClassicGroupState.EMPTY
        group.enter(ClassicGroupState.PREPARING_REBALANCE, moment)
        if group.is_initial:
            group.wait_left_ms = group.rebalance_timeout_ms
            self._extend_wait(group, moment)
        elif group.all_have_joined:
            yield from self._end_joining(group, moment)
        else:
            self._expect_joins(group, moment.now_ms + group.rebalance_timeout_ms)

    def go_on(self, group: ClassicGroup, moment: Moment) -> Steps[None]:
        """End the joining phase if no other member is awaited."""
        is_joining = group.state is ClassicGroupState.PREPARING_REBALANCE
        if is_joining and not group.is_initial and group.all_have_joined:
            yield from self._end_joining(group, moment)

    def joining_timed_out(self, group: ClassicGroup, moment: Moment) -> Steps[None]:
        """The time to join is over; an initial rebalance waits longer if a member has joined meanwhile."""
        if group.state is not ClassicGroupState.PREPARING_REBALANCE:
            return
        if group.is_initial and group.joined_meanwhile and group.wait_left_ms > 0:
            self._extend_wait(group, moment)
            return
        yield from self._end_joining(group, moment)

    def _end_joining(self, group: ClassicGroup, moment: Moment) -> Steps[None]:
        """Begin the next generation with the members that have joined; others are removed unless static."""
        self._timers.cancel(Timer(TimerKind.JOIN, group.group_id))
        for member in list(group.members.values()):
            if member.awaits_join is None and not member.is_static:
                self.forget(group, member.member_id)
        if group.members and not group.elect_leader():
            # No static member has come back; their sessions will end.
            wait_ms = max(group.rebalance_timeout_ms, ABSENT_WAIT_MS_MIN)
            self._expect_joins(group, moment.now_ms + wait_ms)
            return
        group.is_initial = False
        if group.members:
            group.begin_generation(moment)
            self._answer_joins(group, moment)
        else:
            yield from _become_empty(group, moment)

    def syncing_timed_out(self, group: ClassicGroup, moment: Moment) -> Steps[None]:
        """The time to sync is over: members that have not synced are removed."""
        if group.state not in _HAS_GENERATION or not group.pending_syncs:
            return
        for member_id in list(group.pending_syncs):
            self.forget(group, member_id)
        yield from self.begin(group, moment)

    def note_sync(self, group: ClassicGroup, member_id: str) -> None:
        """The member has sent its SyncGroup."""
        group.pending_syncs.discard(member_id)
        if not group.pending_syncs:
            self._timers.cancel(Timer(TimerKind.SYNC, group.group_id))

    def settle(self, group: ClassicGroup, assignment: dict[str, bytes], moment: Moment) -> Steps[None]:
        """Write the leader's assignment, then answer the SyncGroups that wait. Members without an assignment
        get an empty one.
        """
        try:
            yield Write([stable_generation(group, assignment, moment.wall_ms)])
        except ApiError as error:
            self._refuse_syncs(group, error.code, moment)
            yield from self.begin_or_go_on(group, moment)
            return
        for member in list(group.members.values()):
            if member.awaits_sync is not None:
                self.expect_heartbeat(group, member, moment.now_ms)
                member.answer_sync(group.sync_result(member))

    def forget(self, group: ClassicGroup, member_id: str) -> None:
        """Remove a member, or one that was about to join, and refuse the requests that it waits for."""
        member = group.members.get(member_id)
        if member is not None:
            member.refuse(ErrorCode.unknown_member_id, "")
        group.remove(member_id)
        self.end_session(group, member_id)

    def end_session(self, group: ClassicGroup, member_id: str) -> None:
        """Expect no heartbeat of this member id any more."""
        self._timers.cancel(Timer(TimerKind.SESSION, group.group_id, member_id))

    def end_waits(self, group: ClassicGroup, code: ErrorCode) -> None:
        """The group is gone: end its timers, and answer its members' requests with `code`."""
        self._timers.cancel(Timer(TimerKind.JOIN, group.group_id))
        self._timers.cancel(Timer(TimerKind.SYNC, group.group_id))
        for member_id in (*group.members, *group.pending_joins):
            self.end_session(group, member_id)
        for member in group.members.values():
            member.refuse(code, member.member_id)

    def _extend_wait(self, group: ClassicGroup, moment: Moment) -> None:
        group.joined_meanwhile = False
        wait_ms = min(self._settings.initial_rebalance_delay_ms, group.wait_left_ms)
        group.wait_left_ms -= wait_ms
        self._expect_joins(group, moment.now_ms + wait_ms)

    def _expect_joins(self, group: ClassicGroup, deadline_ms: int) -> None:
        self._timers.restart(Timer(TimerKind.JOIN, group.group_id), deadline_ms)

    def _answer_joins(self, group: ClassicGroup, moment: Moment) -> None:
        group.pending_syncs.update(group.members)
        sync_deadline_ms = moment.now_ms + group.rebalance_timeout_ms
        self._timers.restart(Timer(TimerKind.SYNC, group.group_id), sync_deadline_ms)
        for member in list(group.members.values()):
            self.expect_heartbeat(group, member, moment.now_ms)
            member.is_new = False
            member.answer_join(group.result_for(member))

    def _refuse_syncs(self, group: ClassicGroup, code: ErrorCode, moment: Moment) -> None:
        """There is no assignment: refuse the SyncGroups that wait. Their members get a whole session."""
        for member in list(group.members.values()):
            member.assignment = b""
            if member.awaits_sync is not None:
                self.expect_heartbeat(group, member, moment.now_ms)
                member.answer_sync(SyncResult(code))


def _become_empty(group: ClassicGroup, moment: Moment) -> Steps[None]:
    """Write the generation without members. The members are gone also if that fails: then a restart brings
    the generation before back, and its members' sessions end.
    """
    record = empty_generation(group, moment.wall_ms)
    try:
        yield Write([record])
    except ApiError:
        assert record[1] is not None
        group.replay(record[1], written_at(moment.now_ms))
