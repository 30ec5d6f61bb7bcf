"""All classic groups of this coordinator, changed by the replay of their records. Pure.

A commit for a group id without a group creates a simple group, which has no record of its own.
"""

from __future__ import annotations

from barnabas.coordinator.classic.group import ClassicGroup, ClassicGroupState, state_since
from barnabas.coordinator.group.registry import GroupRegistry
from barnabas.protocol.classic_group_records import ClassicGroupRecord
from barnabas.runtime.moment import Moment, MonotonicOf


class ClassicRegistry(GroupRegistry[ClassicGroup]):
    """Groups by id."""

    def replay(self, record: ClassicGroupRecord, monotonic_of: MonotonicOf) -> None:
        """Apply one record. A tombstone of an unknown group is ignored: compaction leaves such tombstones."""
        key, value = record
        group = self._groups.get(key.group)
        if value is None:
            if group is not None:
                self.drop(group)
            return
        if group is None:
            group = self._groups[key.group] = ClassicGroup(key.group, state_since(value, monotonic_of))
        group.replay(value, monotonic_of)

    def replay_commit(self, group_id: str, committed_at: Moment) -> None:
        """An offset was committed; without a group it creates a simple one."""
        if group_id not in self._groups and self._other_group_type(group_id) is None:
            self._groups[group_id] = ClassicGroup(group_id, committed_at)

    def drop_simple(self, group_id: str) -> None:
        """Forget the group if it is a simple one that no member has ever joined."""
        group = self._groups.get(group_id)
        if group is None or group.state is not ClassicGroupState.EMPTY:
            return
        if group.protocol_type is None and not group.pending_joins:
            self.drop(group)
