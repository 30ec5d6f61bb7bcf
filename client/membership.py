"""One member of a share group: a state machine over heartbeats and their answers (pure, KIP-932).

    state      meaning                                           an answer leads to
    JOINING    epoch 0 is sent, with the topics                  MEMBER, or FAILED
    MEMBER     the epoch from the coordinator is sent            MEMBER, or JOINING if the member is unknown
    LEFT       epoch -1 was sent, and nothing more will be sent  -
    FAILED     the error is lasting; see `error`                 -

`request` returns the next heartbeat; `handle` evaluates its answer and returns when to send again. A share
group has no revocation: an assignment is valid as soon as the member receives it. `heartbeats` does the
sending. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import Final, NamedTuple

from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest
from kio.schema.share_group_heartbeat.v1.response import ShareGroupHeartbeatResponse

from barnabas.client.errors import BrokerError, broker_error
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.primitive import GroupId, TopicName, i32, to_milliseconds

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1

UNASSIGNED_RETRY_MS: Final = 1_000
"""Apache Kafka assigns partitions to a new member share.assignment.interval.ms after it joined at the
earliest. A member that asks again only after the usual interval waits five times as long for the first
record."""
UNASSIGNED_RETRIES_MAX: Final = 5
"""After this number of retries there is nothing to assign, and the usual interval is enough."""

_REJOIN: Final = frozenset({ErrorCode.unknown_member_id, ErrorCode.fenced_member_epoch})
_COORDINATOR_MOVED: Final = frozenset({ErrorCode.not_coordinator, ErrorCode.coordinator_not_available})


class MembershipState(Enum):
    JOINING = auto()
    MEMBER = auto()
    LEFT = auto()
    FAILED = auto()


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
    move: Next
    delay_ms: int = 0


class Membership:
    """One member. `assignment` is the partitions that it reads; empty while it is not a member."""

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
        """Whether the coordinator knows `_topics`; `_topics_sent` are those of the outstanding request."""
        self._topics_sent: tuple[str, ...] | None = None
        self._may_be_known = False
        """Whether the coordinator may know this member: true from its request on, not only from the
        answer."""
        self._unassigned_count = 0

    def subscribe(self, topics: Iterable[str]) -> None:
        """Subscribe to other topics, at least one, with the next heartbeat."""
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
        """The next step after an answer to `request`. An answer that arrives after `leave` is ignored."""
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
        """A member that is refused while joining waits, because it would otherwise loop."""
        self.state = MembershipState.JOINING
        self.member_epoch = JOIN_EPOCH
        self._may_be_known = False
        self.assignment = frozenset()
        self._unassigned_count = 0
        return Step(Next.AT_ONCE if at_once else Next.BACK_OFF)
