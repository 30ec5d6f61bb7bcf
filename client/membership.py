"""One member's place in its share group: a state machine over heartbeats and their answers (pure, KIP-932).

    state      meaning                                      an answer leads to
    JOINING    epoch 0 is sent, with the topics             MEMBER, or FAILED
    MEMBER     the epoch that the coordinator gave is sent  MEMBER, or JOINING if it knows us no more
    LEFT       epoch -1 was sent, nothing more will be      -
    FAILED     the answer will not change; `error` says     -

`request` is what to send next, `handle` takes the answer and says when to send again. A share group has no
revocation: an assignment holds from when it is heard of. Sending is the subject of `heartbeats`.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import Final, NamedTuple

from barnabas.client.errors import BrokerError, broker_error
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from barnabas.protocol.primitive import GroupId, TopicName, i32, to_milliseconds

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1

UNASSIGNED_RETRY_MS: Final = 1_000
"""Apache Kafka gives a new member its partitions share.assignment.interval.ms after it joined at the soonest.
Who asks again only after the usual interval waits five times as long for the first record."""
UNASSIGNED_RETRIES_MAX: Final = 5
"""After so many, there is nothing to assign, and the usual interval is often enough."""

_REJOIN: Final = frozenset({ErrorCode.unknown_member_id, ErrorCode.fenced_member_epoch})
_COORDINATOR_MOVED: Final = frozenset({ErrorCode.not_coordinator, ErrorCode.coordinator_not_available})


class MembershipState(Enum):
    JOINING = auto()
    MEMBER = auto()
    LEFT = auto()
    FAILED = auto()


class Next(Enum):
    """What to do after an answer."""

    WAIT = auto()
    """Send again after `Step.delay_ms`."""
    AT_ONCE = auto()
    BACK_OFF = auto()
    """Send again after a pause that grows."""
    FIND_COORDINATOR = auto()
    """Back off, and ask who coordinates the group now."""
    STOP = auto()


class Step(NamedTuple):
    move: Next
    delay_ms: int = 0


class Membership:
    """One member. `assignment` is what it is to read, empty while it isn't one."""

    def __init__(
        self, group_id: str, member_id: str, topics: Iterable[str], rack_id: str | None = None
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.state = MembershipState.JOINING
        self.member_epoch = JOIN_EPOCH
        self.assignment: frozenset[TopicIdPartition] = frozenset()
        self.error: BrokerError | None = None
        self._topics = tuple(dict.fromkeys(topics))
        self._rack_id = rack_id
        self._topics_are_known = False
        """Whether the coordinator has heard of `_topics`; those in the request under way are noted apart."""
        self._topics_sent: tuple[str, ...] | None = None
        self._may_be_known = False
        """Whether the coordinator may have heard of this member: from the request on, not from its answer."""
        self._unassigned_count = 0

    def subscribe(self, topics: Iterable[str]) -> None:
        """Other topics from the next heartbeat on, at least one."""
        self._topics = tuple(dict.fromkeys(topics))
        self._topics_are_known = False

    def request(self) -> ShareGroupHeartbeatRequest:
        """The heartbeat to send now."""
        joins = self.state is MembershipState.JOINING
        self._may_be_known = True
        self._topics_sent = self._topics if joins or not self._topics_are_known else None
        return ShareGroupHeartbeatRequest(
            group_id=GroupId(self.group_id),
            member_id=self.member_id,
            member_epoch=i32(self.member_epoch),
            rack_id=self._rack_id if joins else None,
            subscribed_topic_names=(
                None if self._topics_sent is None else tuple(TopicName(topic) for topic in self._topics_sent)
            ),
        )

    def leave(self) -> ShareGroupHeartbeatRequest | None:
        """The last heartbeat; None if the coordinator cannot know this member."""
        may_be_known = self._may_be_known
        self.state = MembershipState.LEFT
        self.assignment = frozenset()
        if not may_be_known:
            return None
        return ShareGroupHeartbeatRequest(
            group_id=GroupId(self.group_id), member_id=self.member_id, member_epoch=i32(LEAVE_EPOCH)
        )

    def handle(self, response: ShareGroupHeartbeatResponse) -> Step:
        """What an answer to `request` leads to. One that comes after `leave` leads to nothing."""
        if self.state is MembershipState.LEFT:
            return Step(Next.STOP)
        if response.error_code is ErrorCode.none:
            return self._go_on(response)
        return self._refused(response.error_code, response.error_message)

    def _go_on(self, response: ShareGroupHeartbeatResponse) -> Step:
        self.state = MembershipState.MEMBER
        self.member_epoch = response.member_epoch
        if self._topics_sent is not None:
            self._topics_are_known = self._topics_sent == self._topics
        if response.assignment is not None:
            self.assignment = frozenset(
                TopicIdPartition(topic.topic_id, index)
                for topic in response.assignment.topic_partitions
                if topic.topic_id is not None
                for index in topic.partitions
            )
        return self._wait(to_milliseconds(response.heartbeat_interval))

    def _wait(self, interval_ms: int) -> Step:
        if not self._topics_are_known:
            return Step(Next.AT_ONCE)
        if self.assignment:
            self._unassigned_count = 0
        elif self._unassigned_count < UNASSIGNED_RETRIES_MAX:
            self._unassigned_count += 1
            return Step(Next.WAIT, min(interval_ms, UNASSIGNED_RETRY_MS))
        return Step(Next.WAIT, interval_ms)

    def _refused(self, code: ErrorCode, message: str | None) -> Step:
        was_member = self.state is MembershipState.MEMBER
        if code in _REJOIN or (code is ErrorCode.group_id_not_found and was_member):
            return self._join_again(at_once=was_member)
        if code in _COORDINATOR_MOVED:
            return Step(Next.FIND_COORDINATOR)
        if code.retriable:
            return Step(Next.BACK_OFF)
        self.state = MembershipState.FAILED
        self.assignment = frozenset()
        self.error = broker_error(code, message)
        return Step(Next.STOP)

    def _join_again(self, *, at_once: bool) -> Step:
        """Whoever is refused while joining already would turn in circles, so that waits."""
        self.state = MembershipState.JOINING
        self.member_epoch = JOIN_EPOCH
        self._may_be_known = False
        self.assignment = frozenset()
        self._unassigned_count = 0
        return Step(Next.AT_ONCE if at_once else Next.BACK_OFF)
