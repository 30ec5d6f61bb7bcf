"""The records of classic groups and of committed offsets, made from their state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from barnabas.coordinator.classic.committed_offset import CommittedOffset, OffsetKey
from barnabas.coordinator.classic.group import ClassicGroup
from barnabas.coordinator.classic.member import ClassicMember
from barnabas.protocol.classic_group_records import (
    ClassicKey,
    ClassicValue,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)

ClassicRecord: TypeAlias = tuple[ClassicKey, ClassicValue | None]
"""Key and value; a value of None is a tombstone."""


def group_metadata(group: ClassicGroup, assignment: Mapping[str, bytes]) -> ClassicRecord:
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


def new_group(group: ClassicGroup) -> ClassicRecord:
    """A group that nobody has joined yet."""
    return GroupMetadataKey(group=group.group_id), GroupMetadataValue(
        protocol_type="",
        generation=0,
        protocol=None,
        leader=None,
        current_state_timestamp_ms=group.state_since_ms,
        members=(),
    )


def deleted_group(group_id: str) -> ClassicRecord:
    return GroupMetadataKey(group=group_id), None


def committed_offset(key: OffsetKey, committed: CommittedOffset) -> ClassicRecord:
    return _offset_key(key), OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp_ms=committed.committed_at_ms,
        expire_timestamp_ms=committed.expires_at_ms,
        topic_id=committed.topic_id,
    )


def deleted_offset(key: OffsetKey) -> ClassicRecord:
    return _offset_key(key), None


def _offset_key(key: OffsetKey) -> OffsetCommitKey:
    return OffsetCommitKey(group=key.group_id, topic=key.topic_name, partition=key.partition)


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
