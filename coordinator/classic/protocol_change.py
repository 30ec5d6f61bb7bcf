"""Classic groups that become consumer groups, and the other way round (KIP-848): what that means for those
who wait. How a group is turned into the other is `consumer.migration`'s subject.
"""

from __future__ import annotations

from barnabas.coordinator.classic.group import ClassicGroup
from barnabas.coordinator.classic.rebalance import Rebalance
from barnabas.coordinator.classic.registry import ClassicRegistry
from barnabas.coordinator.classic.requests import Moment
from barnabas.coordinator.classic.timers import ClassicTimers
from barnabas.coordinator.group.steps import Steps
from barnabas.protocol.errors import ErrorCode


class ProtocolChange:
    """The `ClassicGroups` of the consumer groups' coordinator."""

    def __init__(self, registry: ClassicRegistry, timers: ClassicTimers, rebalance: Rebalance) -> None:
        self._registry = registry
        self._timers = timers
        self._rebalance = rebalance

    def find(self, group_id: str) -> ClassicGroup | None:
        return self._registry.get(group_id)

    def release(self, group: ClassicGroup) -> None:
        self.end_waits(group, ErrorCode.rebalance_in_progress)

    def adopt(self, group: ClassicGroup, moment: Moment, *, rebalance: bool) -> Steps[None]:
        self._registry.put(group)
        for member in group.members.values():
            self._rebalance.expect_heartbeat(group, member, moment.now_ms)
        if rebalance:
            yield from self._rebalance.begin(group, moment)

    def end_waits(self, group: ClassicGroup, code: ErrorCode) -> None:
        """The group is gone: nobody is waited for, and who waits is told so."""
        self._timers.end_joins(group.group_id)
        self._timers.end_syncs(group.group_id)
        for member_id in (*group.members, *group.pending_joins):
            self._timers.end_session(group.group_id, member_id)
        for member in group.members.values():
            member.refuse(code, member.member_id)
