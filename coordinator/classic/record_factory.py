"""The records of classic groups, made from their state."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.coordinator.classic.group import ClassicGroup
from barnabas.coordinator.classic.member import ClassicMember
from barnabas.protocol.classic_group_records import (
    ClassicGroupRecord,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)


def group_metadata(group: ClassicGroup, assignment: Mapping[str, bytes]) -> ClassicGroupRecord:
    """The group's generation, with what each member is assigned."""
    return GroupMetadataKey(group=group.group_id), GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader,
        current_state_timestamp_ms=group.state_since_ms,
        members=tuple(
            _member_metadata(group, member, assignment.get(member.member_id, b""))
            for member in group.members.values()
        ),
    )


def new_group(group: ClassicGroup) -> ClassicGroupRecord:
    """A group that nobody has joined yet."""
    return GroupMetadataKey(group=group.group_id), GroupMetadataValue(
        protocol_type="",
        generation=0,
        protocol=None,
        leader=None,
        current_state_timestamp_ms=group.state_since_ms,
        members=(),
    )


def deleted_group(group_id: str) -> ClassicGroupRecord:
    return GroupMetadataKey(group=group_id), None


def _member_metadata(group: ClassicGroup, member: ClassicMember, assignment: bytes) -> MemberMetadata:
    assert group.protocol_name is not None, "a group with members has selected a protocol"
    return MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.session_timeout_ms,
        subscription=member.protocols[group.protocol_name],
        assignment=assignment,
    )
