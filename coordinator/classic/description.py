"""Classic groups as administrators see them: the answers of DescribeGroups, before authorization."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.coordinator.classic.group import ClassicGroup, ClassicGroupState
from barnabas.coordinator.classic.member import ClassicMember


class DescribedMember(NamedTuple):
    """A member; its metadata is empty unless the group is stable."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class DescribedGroup(NamedTuple):
    """A group; `protocol` is empty unless it is stable."""

    group_id: str
    state: str
    protocol_type: str
    protocol: str
    members: list[DescribedMember]


def describe_group(group: ClassicGroup) -> DescribedGroup:
    protocol = group.protocol_name if group.state is ClassicGroupState.STABLE else None
    return DescribedGroup(
        group.group_id,
        group.state.value,
        group.protocol_type or "",
        protocol or "",
        [_describe_member(member, protocol) for member in group.members.values()],
    )


def _describe_member(member: ClassicMember, protocol: str | None) -> DescribedMember:
    return DescribedMember(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        b"" if protocol is None else member.protocols[protocol],
        member.assignment,
    )
