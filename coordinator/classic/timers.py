"""What a classic group waits for, with a time: a heartbeat, that members join, that they sync."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from barnabas.runtime.deadline_table import DeadlineTable


class TimerKind(Enum):
    SESSION = "session"
    """A member is to send a heartbeat, or to ask again."""
    JOIN = "join"
    """A group's members are to join."""
    SYNC = "sync"
    """A group's members are to sync."""


class Timer(NamedTuple):
    """One timer; `member_id` is empty for those of a whole group."""

    kind: TimerKind
    group_id: str
    member_id: str = ""


class ClassicTimers:
    """All timers of all groups; times are monotonic."""

    def __init__(self) -> None:
        self.deadlines = DeadlineTable[Timer]()

    def expect_heartbeat(self, group_id: str, member_id: str, deadline_ms: int) -> None:
        self.deadlines.restart(Timer(TimerKind.SESSION, group_id, member_id), deadline_ms)

    def end_session(self, group_id: str, member_id: str) -> None:
        self.deadlines.cancel(Timer(TimerKind.SESSION, group_id, member_id))

    def expect_joins(self, group_id: str, deadline_ms: int) -> None:
        self.deadlines.restart(Timer(TimerKind.JOIN, group_id), deadline_ms)

    def end_joins(self, group_id: str) -> None:
        self.deadlines.cancel(Timer(TimerKind.JOIN, group_id))

    def expect_syncs(self, group_id: str, deadline_ms: int) -> None:
        self.deadlines.restart(Timer(TimerKind.SYNC, group_id), deadline_ms)

    def end_syncs(self, group_id: str) -> None:
        self.deadlines.cancel(Timer(TimerKind.SYNC, group_id))
