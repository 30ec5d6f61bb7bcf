"""All classic groups of this coordinator, and how they come out of the log.

What a group is doing lives in memory: its record says what it was when its generation became stable or empty.
So a group's record is taken over when it is loaded, while one that was just written says nothing new but
that the group is there. Whoever commits where there is no group makes a simple one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from barnabas.coordinator.classic.group import ClassicGroup, ClassicGroupState
from barnabas.coordinator.classic.member import ClassicMember
from barnabas.protocol.classic_group_records import (
    NO_TIMESTAMP,
    ClassicGroupRecord,
    GroupMetadataValue,
    MemberMetadata,
)
from barnabas.protocol.errors import ApiError, ErrorCode


class ClassicRegistry:
    """Groups by id."""

    def __init__(self, *, max_groups: int, other_group_type: Callable[[str], str | None]) -> None:
        """`other_group_type` answers the type of a group of that id that is no classic one, or None."""
        self._max_groups = max_groups
        self._other_group_type = other_group_type
        self._groups: dict[str, ClassicGroup] = {}

    def __iter__(self) -> Iterator[ClassicGroup]:
        return iter(self._groups.values())

    def get(self, group_id: str) -> ClassicGroup | None:
        return self._groups.get(group_id)

    def existing(self, group_id: str) -> ClassicGroup:
        """The group; GROUP_ID_NOT_FOUND if there is none, or one of another type."""
        group = self._groups.get(group_id)
        if group is not None:
            return group
        if self._other_group_type(group_id) is None:
            raise ApiError(ErrorCode.group_id_not_found, f"Group {group_id} not found.")
        raise ApiError(ErrorCode.group_id_not_found, f"Group {group_id} is not a classic group.")

    def is_of_another_type(self, group_id: str) -> bool:
        return group_id not in self._groups and self._other_group_type(group_id) is not None

    def new(self, group_id: str, wall_ms: int, *, refusal: ErrorCode) -> ClassicGroup:
        """A new group, kept from now on; `refusal` if there are `group.classic.max.groups`."""
        self.check_room(refusal)
        group = self._groups[group_id] = ClassicGroup(group_id, wall_ms)
        return group

    def check_room(self, refusal: ErrorCode) -> None:
        """`refusal` if there may be no more groups."""
        if len(self._groups) >= self._max_groups:
            message = f"There are {self._max_groups} groups already (group.classic.max.groups)."
            raise ApiError(refusal, message)

    def put(self, group: ClassicGroup) -> None:
        """Keep a group that was one of another type."""
        self._groups[group.group_id] = group

    def drop_simple(self, group_id: str) -> None:
        """Forget a group that nobody has ever joined, if it is one."""
        group = self._groups.get(group_id)
        is_empty = group is not None and group.state is ClassicGroupState.EMPTY and not group.pending_joins
        if group is not None and is_empty and group.protocol_type is None:
            self.drop(group_id)

    def drop(self, group_id: str) -> None:
        """Forget a group, if there is one."""
        self._groups.pop(group_id, None)

    def drop_partition(self, log_partition: int, partition_count: int) -> list[ClassicGroup]:
        """Forget the groups whose records are in that partition of so many; answers them."""
        dropped = [
            group for group in self._groups.values() if group.id_hash % partition_count == log_partition
        ]
        for group in dropped:
            del self._groups[group.group_id]
        return dropped

    def load(self, record: ClassicGroupRecord) -> None:
        """Take over a record of a log that is being loaded."""
        key, value = record
        if value is None:
            self.drop(key.group)
        else:
            self._groups[key.group] = _loaded_group(key.group, value)

    def note_written(self, record: ClassicGroupRecord) -> None:
        """A record of an operation is in the log."""
        key, value = record
        if value is None:
            self.drop(key.group)

    def ensure_group(self, group_id: str, committed_at_ms: int) -> None:
        """Somebody has committed: where there is no group it is a simple one, with nothing but offsets."""
        if group_id not in self._groups and self._other_group_type(group_id) is None:
            self._groups[group_id] = ClassicGroup(group_id, committed_at_ms)


def _loaded_group(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    group = ClassicGroup(group_id, value.current_state_timestamp_ms)
    group.generation_id = value.generation
    group.protocol_type = value.protocol_type or None
    for stored in value.members:
        group.add(_loaded_member(value, stored), value.protocol_type)
    group.protocol_name = value.protocol
    group.leader = value.leader
    if group.members:
        group.state = ClassicGroupState.STABLE
    group.learn_subscriptions()
    return group


def _loaded_member(value: GroupMetadataValue, stored: MemberMetadata) -> ClassicMember:
    timeout_ms = stored.rebalance_timeout_ms
    return ClassicMember(
        member_id=stored.member_id,
        group_instance_id=stored.group_instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        session_timeout_ms=stored.session_timeout_ms,
        # Before there were rebalance timeouts the session's was both.
        rebalance_timeout_ms=stored.session_timeout_ms if timeout_ms == NO_TIMESTAMP else timeout_ms,
        protocols={value.protocol or "": stored.subscription},
        assignment=stored.assignment,
    )
