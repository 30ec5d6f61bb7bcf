"""Requests to classic groups, and their answers, with fields in the order of the protocol."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.coordinator.group.record_names import is_too_long
from barnabas.protocol.errors import ErrorCode

UNKNOWN_MEMBER_ID = ""
"""The member id in a request of a member that has none yet."""
NO_GENERATION = -1
NO_LEADER = ""


class JoinRequest(NamedTuple):
    """JoinGroup. `protocols` are metadata by protocol name, the member's favourite first."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Mapping[str, bytes]
    requires_known_member_id: bool
    """Whether a new dynamic member first gets its id and then has to ask again (version 4, KIP-394)."""
    can_skip_assignment: bool
    """Whether the answer may tell a leader to leave the assignment unchanged (version 9, KIP-814)."""


def has_too_long_names(request: JoinRequest) -> bool:
    """Whether a name is too long for a record; member ids contain the client id or the instance id."""
    prefixes = (request.client_id, request.group_instance_id or "")
    longest_ids = (f"{prefix}-{UUID(int=0)}" for prefix in prefixes)
    return any(map(is_too_long, (*longest_ids, request.protocol_type, *request.protocols)))


class JoinedMember(NamedTuple):
    """A member in the leader's list."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


class JoinResult(NamedTuple):
    """The answer to JoinGroup; only the leader gets `members`."""

    error_code: ErrorCode
    member_id: str
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = NO_LEADER
    skip_assignment: bool = False
    members: Sequence[JoinedMember] = ()


class SyncRequest(NamedTuple):
    """SyncGroup. `assignments` are the leader's, by member id; the protocol is None before version 5."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    assignments: Mapping[str, bytes]


class SyncResult(NamedTuple):
    """The answer to SyncGroup."""

    error_code: ErrorCode
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class LeftMember(NamedTuple):
    """The outcome for one member that leaves."""

    identity: MemberIdentity
    error_code: ErrorCode
