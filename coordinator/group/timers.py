"""The deadlines of groups' members and of whole groups. Times are monotonic."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, TypeAlias

from barnabas.runtime.deadline_table import DeadlineTable


class TimerKind(StrEnum):
    """A string, because its hash is then computed without a call of Python code."""

    SESSION = "session"
    """A member's next heartbeat is due."""
    REVOCATION = "revocation"
    """A member of a consumer group is to give up partitions."""
    JOIN = "join"
    """A member, or all members of a classic group, are to join."""
    LOAD_CHECK = "load check"
    """The load of a share group is to be looked at."""
    SYNC = "sync"
    """A member, or all members of a classic group, are to sync."""


class Timer(NamedTuple):
    """The key of one deadline; `member_id` is empty if it is the whole group's."""

    kind: TimerKind
    group_id: str
    member_id: str = ""


GroupTimers: TypeAlias = DeadlineTable[Timer]
