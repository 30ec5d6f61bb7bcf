"""The records of classic groups, made from their state. `wall_ms` is when the group enters its new state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from barnabas.coordinator.classic.group import ClassicGroup
from barnabas.coordinator.classic.member import ClassicMember
from barnabas.coordinator.classic.requests import JoinRequest
from barnabas.protocol.classic_group_records import (
    ClassicGroupRecord,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)


def stable_generation(
    group: ClassicGroup, assignment: Mapping[str, bytes], wall_ms: int
) -> ClassicGroupRecord:
    """The group's generation, with the assignment of each member."""
    assert group.protocol_name is not None, "a generation with members has selected a protocol"
    members = tuple(
        _member_metadata(member, group.protocol_name, assignment.get(member.member_id, b""))
        for member in group.members.values()
    )
    return GroupMetadataKey(group=group.group_id), GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader,
        current_state_timestamp_ms=wall_ms,
        members=members,
    )


def generation_with_returned_member(
    group: ClassicGroup, old_member_id: str, member_id: str, request: JoinRequest
) -> ClassicGroupRecord:
    """The group's stable generation, with a static member under a new id and as its request describes it."""
    key, value = stable_generation(group, group.assignment(), group.state_since.wall_ms)
    assert value is not None and value.protocol is not None
    by_id = {member.member_id: member for member in value.members}
    returned = replace(
        by_id.pop(old_member_id),
        member_id=member_id,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        subscription=request.protocols[value.protocol],
    )
    leader = member_id if value.leader == old_member_id else value.leader
    return key, replace(value, leader=leader, members=(*by_id.values(), returned))


def empty_generation(group: ClassicGroup, wall_ms: int) -> ClassicGroupRecord:
    """The next generation of a group whose members are gone."""
    return _without_members(group.group_id, group.protocol_type or "", group.generation_id + 1, wall_ms)


def new_group(group_id: str, wall_ms: int) -> ClassicGroupRecord:
    """A group that no member has joined yet."""
    return _without_members(group_id, "", 0, wall_ms)


def deleted_group(group_id: str) -> ClassicGroupRecord:
    return GroupMetadataKey(group=group_id), None


def _without_members(
    group_id: str, protocol_type: str, generation_id: int, wall_ms: int
) -> ClassicGroupRecord:
    return GroupMetadataKey(group=group_id), GroupMetadataValue(
        protocol_type=protocol_type,
        generation=generation_id,
        protocol=None,
        leader=None,
        current_state_timestamp_ms=wall_ms,
        members=(),
    )


def _member_metadata(member: ClassicMember, protocol_name: str, assignment: bytes) -> MemberMetadata:
    return MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.session_timeout_ms,
        subscription=member.protocols[protocol_name],
        assignment=assignment,
    )
