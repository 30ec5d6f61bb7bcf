"""From one generation of a classic group to the next: who is waited for, and for how long.

A rebalance begins when somebody joins, leaves or has changed. Members hear of it by their next heartbeat, and
join again; each JoinGroup waits. When all have joined, or the slowest one's rebalance timeout is over, the
generation begins: all are told, the leader of everybody. Each then sends SyncGroup, which waits for the
leader's; who does not within the rebalance timeout is removed, and a rebalance begins anew.

A group that was empty waits for `group.initial.rebalance.delay.ms` after each newcomer, up to the rebalance
timeout, since the members of a group tend to start together.
"""

from __future__ import annotations

from barnabas.coordinator.classic.group import ClassicGroup, ClassicGroupState
from barnabas.coordinator.classic.member import ClassicMember
from barnabas.coordinator.classic.record_factory import group_metadata
from barnabas.coordinator.classic.requests import Moment, SyncResult
from barnabas.coordinator.classic.settings import ClassicSettings
from barnabas.coordinator.classic.timers import ClassicTimers
from barnabas.coordinator.group.steps import Steps
from barnabas.coordinator.replay.steps import Write
from barnabas.protocol.errors import ApiError, ErrorCode

_MAY_REBALANCE = frozenset(
    {ClassicGroupState.EMPTY, ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.STABLE}
)
_HAS_GENERATION = frozenset({ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.STABLE})

ABSENT_WAIT_MS_MIN = 500
"""How long static members of whom none has come back are waited for anew, if their own timeouts are less."""


class Rebalance:
    """Takes groups through their rebalances. Each method is a step of an operation on one group."""

    def __init__(self, timers: ClassicTimers, settings: ClassicSettings) -> None:
        self._timers = timers
        self._settings = settings

    def expect_heartbeat(self, group: ClassicGroup, member: ClassicMember, now_ms: int) -> None:
        """Give the member a whole session from now on."""
        deadline_ms = now_ms + member.session_timeout_ms
        self._timers.expect_heartbeat(group.group_id, member.member_id, deadline_ms)

    def begin_or_go_on(self, group: ClassicGroup, moment: Moment) -> Steps[None]:
        """Members have changed: begin a rebalance, or end the joining of the one under way if that is all."""
        if group.state in _MAY_REBALANCE:
            yield from self.begin(group, moment)
        else:
            yield from self.go_on(group, moment)

    def begin(self, group: ClassicGroup, moment: Moment) -> Steps[None]:
        """All are to join. Whoever waits for an assignment is told to join again."""
        if group.state is ClassicGroupState.COMPLETING_REBALANCE:
            self._hand_out(group, {}, ErrorCode.rebalance_in_progress, moment)
        group.pending_syncs.clear()
        self._timers.end_syncs(group.group_id)
        group.is_initial = group.state is ClassicGroupState.EMPTY
        group.enter(ClassicGroupState.PREPARING_REBALANCE, moment.wall_ms)
        if group.is_initial:
            self._wait_for_more(group, moment)
        elif group.all_have_joined:
            yield from self.complete_join(group, moment)
        else:
            self._timers.expect_joins(group.group_id, moment.now_ms + group.rebalance_timeout_ms)

    def go_on(self, group: ClassicGroup, moment: Moment) -> Steps[None]:
        """End the joining if nobody else is waited for."""
        is_joining = group.state is ClassicGroupState.PREPARING_REBALANCE
        if is_joining and not group.is_initial and group.all_have_joined:
            yield from self.complete_join(group, moment)

    def joining_timed_out(self, group: ClassicGroup, moment: Moment) -> Steps[None]:
        """The time to join is over; an initial rebalance goes on if somebody has come meanwhile."""
        if group.state is not ClassicGroupState.PREPARING_REBALANCE:
            return
        if group.is_initial and group.joined_meanwhile and group.wait_left_ms > 0:
            self._prolong(group, moment)
            return
        yield from self.complete_join(group, moment)

    def complete_join(self, group: ClassicGroup, moment: Moment) -> Steps[None]:
        """Begin the next generation with those that have joined; others are removed, unless static."""
        self._timers.end_joins(group.group_id)
        for member in [one for one in group.members.values() if one.awaits_join is None]:
            if not member.is_static:
                self.forget(group, member.member_id)
        if group.members and not group.elect_leader():
            # None of the static members is back; their sessions end one day.
            wait_ms = max(group.rebalance_timeout_ms, ABSENT_WAIT_MS_MIN)
            self._timers.expect_joins(group.group_id, moment.now_ms + wait_ms)
            return
        group.is_initial = False
        group.begin_generation(moment.wall_ms)
        if group.state is ClassicGroupState.EMPTY:
            yield from _write_empty(group)
        else:
            self._tell_of_generation(group, moment)

    def syncing_timed_out(self, group: ClassicGroup, moment: Moment) -> Steps[None]:
        """The time to sync is over: who hasn't is removed."""
        if group.state not in _HAS_GENERATION or not group.pending_syncs:
            return
        for member_id in list(group.pending_syncs):
            self.forget(group, member_id)
        yield from self.begin(group, moment)

    def note_sync(self, group: ClassicGroup, member_id: str) -> None:
        """The member has sent its SyncGroup."""
        group.pending_syncs.discard(member_id)
        if not group.pending_syncs:
            self._timers.end_syncs(group.group_id)

    def settle(self, group: ClassicGroup, assignment: dict[str, bytes], moment: Moment) -> Steps[None]:
        """The leader has assigned: write it, and tell those who wait. Who is left out gets nothing."""
        try:
            yield Write([group_metadata(group, assignment)])
        except ApiError as error:
            self._hand_out(group, {}, error.code, moment)
            yield from self.begin_or_go_on(group, moment)
            return
        group.enter(ClassicGroupState.STABLE, moment.wall_ms)
        self._hand_out(group, assignment, ErrorCode.none, moment)

    def forget(self, group: ClassicGroup, member_id: str) -> None:
        """Remove a member, or one that was about to join, and answer what it waits for."""
        member = group.members.get(member_id)
        if member is not None:
            member.refuse(ErrorCode.unknown_member_id, "")
        group.remove(member_id)
        self._timers.end_session(group.group_id, member_id)

    def _wait_for_more(self, group: ClassicGroup, moment: Moment) -> None:
        group.wait_left_ms = group.rebalance_timeout_ms
        self._prolong(group, moment)

    def _prolong(self, group: ClassicGroup, moment: Moment) -> None:
        group.joined_meanwhile = False
        wait_ms = min(self._settings.initial_rebalance_delay_ms, group.wait_left_ms)
        group.wait_left_ms -= wait_ms
        self._timers.expect_joins(group.group_id, moment.now_ms + wait_ms)

    def _tell_of_generation(self, group: ClassicGroup, moment: Moment) -> None:
        group.pending_syncs.update(group.members)
        self._timers.expect_syncs(group.group_id, moment.now_ms + group.rebalance_timeout_ms)
        for member in list(group.members.values()):
            self.expect_heartbeat(group, member, moment.now_ms)
            member.is_new = False
            member.answer_join(group.result_for(member))

    def _hand_out(
        self, group: ClassicGroup, assignment: dict[str, bytes], code: ErrorCode, moment: Moment
    ) -> None:
        """Answer those who wait for their assignment, and give them a whole session for what comes next."""
        is_well = code is ErrorCode.none
        for member in list(group.members.values()):
            member.assignment = assignment.get(member.member_id, b"")
            result = SyncResult(code)
            if is_well:
                result = SyncResult(code, group.protocol_type, group.protocol_name, member.assignment)
            if member.awaits_sync is not None:
                self.expect_heartbeat(group, member, moment.now_ms)
                member.answer_sync(result)


def _write_empty(group: ClassicGroup) -> Steps[None]:
    """The generation without members. If it cannot be written, the one before comes back with a restart, and
    its members' sessions end: nothing is lost by that."""
    try:
        yield Write([group_metadata(group, {})])
    except ApiError:
        return
