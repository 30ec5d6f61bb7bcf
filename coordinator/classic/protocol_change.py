"""Classic groups that become consumer groups, and consumer groups that become classic ones (KIP-848): the
effect on members that wait. `consumer.migration` converts the groups.
"""

from __future__ import annotations

from barnabas.coordinator.classic.group import ClassicGroup
from barnabas.coordinator.classic.rebalance import Rebalance
from barnabas.coordinator.classic.registry import ClassicRegistry
from barnabas.coordinator.group.steps import Steps
from barnabas.protocol.errors import ErrorCode
from barnabas.runtime.moment import Moment


class ProtocolChange:
    """The `ClassicGroups` of the consumer groups' coordinator."""

    def __init__(self, groups: ClassicRegistry, rebalance: Rebalance) -> None:
        self._groups = groups
        self._rebalance = rebalance

    def find(self, group_id: str) -> ClassicGroup | None:
        return self._groups.get(group_id)

    def release(self, group: ClassicGroup) -> None:
        self._rebalance.end_waits(group, ErrorCode.rebalance_in_progress)

    def adopt(self, decided: ClassicGroup, moment: Moment, *, rebalance: bool) -> Steps[None]:
        group = self._groups.existing(decided.group_id)
        for member in group.members.values():
            # The log keeps each member's metadata for the selected protocol only.
            member.protocols = decided.members[member.member_id].protocols
            self._rebalance.expect_heartbeat(group, member, moment.now_ms)
        if rebalance:
            yield from self._rebalance.begin(group, moment)
