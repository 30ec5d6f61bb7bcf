"""One member of a classic group, and the replies that it waits for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from barnabas.coordinator.classic.requests import JoinResult, SyncResult
from barnabas.protocol.errors import ErrorCode
from barnabas.runtime.completion import Completion


@dataclass(slots=True, eq=False, kw_only=True)
class ClassicMember:
    """A member; a static one has a `group_instance_id` that outlives its member id (KIP-345)."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Mapping[str, bytes]
    """Its metadata by protocol name, its favourite first."""
    assignment: bytes = b""
    awaits_join: Completion[JoinResult] | None = None
    awaits_sync: Completion[SyncResult] | None = None
    is_new: bool = False
    """Whether it has not been answered yet since it joined: it cannot send heartbeats."""

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def is_excused(self) -> bool:
        """Whether no heartbeat is expected, since it waits for us."""
        return not self.is_new and (self.awaits_join is not None or self.awaits_sync is not None)

    def vote(self, candidates: Collection[str]) -> str:
        """Its favourite among protocols that all members have."""
        return next(name for name in self.protocols if name in candidates)

    def answer_join(self, result: JoinResult) -> bool:
        """Answer the JoinGroup that it waits for; whether there was one."""
        reply, self.awaits_join = self.awaits_join, None
        if reply is None or reply.done:
            return False
        reply.complete(result)
        return True

    def answer_sync(self, result: SyncResult) -> bool:
        """Answer the SyncGroup that it waits for; whether there was one."""
        reply, self.awaits_sync = self.awaits_sync, None
        if reply is None or reply.done:
            return False
        reply.complete(result)
        return True

    def refuse(self, code: ErrorCode, member_id: str) -> None:
        """Answer whatever it waits for with an error."""
        self.answer_join(JoinResult(code, member_id))
        self.answer_sync(SyncResult(code))
