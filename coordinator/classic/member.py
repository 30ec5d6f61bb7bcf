"""One member of a classic group, and the replies that it waits for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.coordinator.classic.requests import JoinResult, SyncResult
from barnabas.protocol.classic_group_records import NO_TIMESTAMP, MemberMetadata
from barnabas.protocol.errors import ErrorCode
from barnabas.runtime.completion import Completion


@dataclass(slots=True, eq=False, kw_only=True)
class ClassicMember:
    """A member; a static one has a `group_instance_id` that outlives its member id (KIP-345)."""

    member_id: str
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = 0
    protocols: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Its metadata by protocol name, its favourite first. The log keeps the group's protocol only."""
    assignment: bytes = b""
    awaits_join: Completion[JoinResult] | None = None
    awaits_sync: Completion[SyncResult] | None = None
    is_new: bool = False
    """Whether its first JoinGroup is unanswered: until then it cannot send heartbeats."""

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def is_excused(self) -> bool:
        """Whether no heartbeat is expected, because it waits for an answer."""
        return not self.is_new and (self.awaits_join is not None or self.awaits_sync is not None)

    def replay(self, stored: MemberMetadata, protocol_name: str) -> None:
        """Take over the member as the log has it."""
        timeout_ms = stored.rebalance_timeout_ms
        self.member_id = stored.member_id
        self.group_instance_id = stored.group_instance_id
        self.client_id = stored.client_id
        self.client_host = stored.client_host
        self.session_timeout_ms = stored.session_timeout_ms
        # Before there were rebalance timeouts the session timeout served as both.
        self.rebalance_timeout_ms = stored.session_timeout_ms if timeout_ms == NO_TIMESTAMP else timeout_ms
        self.assignment = stored.assignment
        if self.protocols.get(protocol_name) != stored.subscription:
            self.protocols = {protocol_name: stored.subscription}

    def answer_join(self, result: JoinResult) -> None:
        """Answer the JoinGroup that it waits for, if there is one."""
        reply, self.awaits_join = self.awaits_join, None
        if reply is not None and not reply.done:
            reply.complete(result)

    def answer_sync(self, result: SyncResult) -> None:
        """Answer the SyncGroup that it waits for, if there is one."""
        reply, self.awaits_sync = self.awaits_sync, None
        if reply is not None and not reply.done:
            reply.complete(result)

    def refuse(self, code: ErrorCode, member_id: str) -> None:
        """Answer the requests that it waits for with an error."""
        self.answer_join(JoinResult(code, member_id))
        self.answer_sync(SyncResult(code))
