"""The deadlines of consumer groups' members. Times are monotonic."""

from __future__ import annotations

from barnabas.coordinator.consumer.member import ConsumerMember, MemberState
from barnabas.coordinator.group.membership_configs import MembershipConfigs
from barnabas.coordinator.group.timers import GroupTimers, Timer, TimerKind


class ConsumerTimers:
    """The timers of all members. A member that is late is removed."""

    def __init__(self, configs: MembershipConfigs) -> None:
        self.deadlines = GroupTimers()
        self._configs = configs

    def expect_heartbeat(self, group_id: str, member: ConsumerMember, now_ms: int) -> None:
        """Give the member a whole session from now on."""
        timeout_ms = (
            self._configs.session_timeout_ms(group_id)
            if member.classic is None
            else member.classic.session_timeout_ms
        )
        self._restart(TimerKind.SESSION, group_id, member, now_ms + timeout_ms)

    def expect_revocation(self, group_id: str, member: ConsumerMember, now_ms: int) -> None:
        """Wait for the partitions that the member is to give up, if there are any. For a member of the
        classic protocol `expect_join` waits.
        """
        if member.classic is None and member.state is MemberState.UNREVOKED_PARTITIONS:
            self._restart(TimerKind.REVOCATION, group_id, member, now_ms + member.rebalance_timeout_ms)
        else:
            self.deadlines.cancel(Timer(TimerKind.REVOCATION, group_id, member.member_id))

    def expect_join(self, group_id: str, member: ConsumerMember, now_ms: int) -> None:
        """The member is to join again; a repeated call gives it no more time."""
        if Timer(TimerKind.JOIN, group_id, member.member_id) not in self.deadlines:
            self._restart(TimerKind.JOIN, group_id, member, now_ms + member.rebalance_timeout_ms)

    def joined(self, group_id: str, member: ConsumerMember, now_ms: int) -> None:
        """The member has joined and is to sync."""
        self.deadlines.cancel(Timer(TimerKind.JOIN, group_id, member.member_id))
        self.expect_heartbeat(group_id, member, now_ms)
        self._restart(TimerKind.SYNC, group_id, member, now_ms + member.rebalance_timeout_ms)

    def synced(self, group_id: str, member: ConsumerMember, now_ms: int) -> None:
        self.deadlines.cancel(Timer(TimerKind.SYNC, group_id, member.member_id))
        self.expect_heartbeat(group_id, member, now_ms)

    def forget(self, group_id: str, member_id: str) -> None:
        """The member is gone."""
        for kind in TimerKind:
            self.deadlines.cancel(Timer(kind, group_id, member_id))

    def _restart(self, kind: TimerKind, group_id: str, member: ConsumerMember, deadline_ms: int) -> None:
        self.deadlines.restart(Timer(kind, group_id, member.member_id), deadline_ms)
