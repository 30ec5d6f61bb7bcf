"""A member of a group, as `Heartbeats` drives it: requests, and the step after each answer.

`Membership` is the member of a share group, `ConsumerMembership` that of a consumer group. Both are pure.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final, NamedTuple, Protocol, TypeVar

from barnabas.client.errors import BrokerError
from barnabas.protocol.errors import ErrorCode

RequestT_co = TypeVar("RequestT_co", covariant=True)
ResponseT_contra = TypeVar("ResponseT_contra", contravariant=True)

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
STATIC_LEAVE_EPOCH: Final = -2
"""A static member leaves, and will come back with the same instance id (KIP-345)."""

UNASSIGNED_RETRY_MS: Final = 1_000
"""Brokers assign partitions to a new member some time after it joined. A member that asks again only after
the usual interval waits five times as long for the first record."""
UNASSIGNED_RETRIES_MAX: Final = 5
"""After this number of retries there is nothing to assign, and the usual interval is enough."""

REJOIN_CODES: Final = frozenset({ErrorCode.unknown_member_id, ErrorCode.fenced_member_epoch})
"""The coordinator does not know the member, or not with this epoch: its partitions are lost."""
COORDINATOR_MOVED_CODES: Final = frozenset({ErrorCode.not_coordinator, ErrorCode.coordinator_not_available})


class Next(Enum):
    """The action after an answer."""

    WAIT = auto()
    """Send again after `Step.delay_ms`."""
    AT_ONCE = auto()
    BACK_OFF = auto()
    """Send again after a pause that grows."""
    FIND_COORDINATOR = auto()
    """Back off, and look up the group's coordinator again."""
    STOP = auto()


class Step(NamedTuple):
    """`delay_ms` of None: only news of the member lets it send again."""

    move: Next
    delay_ms: int | None = 0


def step_after_error(code: ErrorCode) -> Step:
    """The step after an error that does not end the membership; STOP for a lasting error."""
    if code in COORDINATOR_MOVED_CODES:
        return Step(Next.FIND_COORDINATOR)
    return Step(Next.BACK_OFF if code.retriable else Next.STOP)


class AssignmentWait:
    """When to ask again: soon, for a few times, while there is no assignment."""

    def __init__(self) -> None:
        self._unassigned_count = 0

    def begin_anew(self) -> None:
        self._unassigned_count = 0

    def step(self, interval_ms: int, *, is_assigned: bool) -> Step:
        if is_assigned:
            self._unassigned_count = 0
        elif self._unassigned_count < UNASSIGNED_RETRIES_MAX:
            self._unassigned_count += 1
            return Step(Next.WAIT, min(interval_ms, UNASSIGNED_RETRY_MS))
        return Step(Next.WAIT, interval_ms)


class Member(Protocol[RequestT_co, ResponseT_contra]):
    """The state machine of one member."""

    @property
    def group_id(self) -> str: ...

    @property
    def is_member(self) -> bool:
        """Whether the coordinator has confirmed the membership."""
        ...

    @property
    def assignment(self) -> frozenset[object]:
        """The last assignment; empty while it is not a member."""
        ...

    @property
    def error(self) -> BrokerError | None:
        """The lasting error that ended the membership."""
        ...

    def request(self) -> RequestT_co | None:
        """The heartbeat to send now; None if there is nothing to send until there is news."""
        ...

    def handle(self, response: ResponseT_contra) -> Step:
        """The next step after an answer."""
        ...

    def note_unanswered(self) -> None:
        """The last request may or may not have arrived."""
        ...

    def leave(self) -> RequestT_co | None:
        """The last heartbeat; None if the coordinator cannot know this member."""
        ...
