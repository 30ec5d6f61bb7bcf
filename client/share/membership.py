"""One member of a share group: a state machine over heartbeats and their answers (pure, KIP-932).

    state      meaning                                           an answer leads to
    JOINING    epoch 0 is sent, with the topics                  MEMBER, or FAILED
    MEMBER     the epoch from the coordinator is sent            MEMBER, or JOINING if the member is unknown
    AWAY       epoch -1 is sent, then nothing until `rejoin`  AWAY
    LEFT       epoch -1 was sent, and nothing more will be sent  -
    FAILED     the error is lasting; see `error`                 -

`request` returns the next heartbeat; `handle` evaluates its answer and returns when to send again. A share
group has no revocation: an assignment is valid as soon as the member receives it. `Heartbeats` sends the
requests. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto

from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest
from kio.schema.share_group_heartbeat.v1.response import ShareGroupHeartbeatResponse

from barnabas.client.errors import BrokerError, joining_error
from barnabas.client.group.member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    REJOIN_CODES,
    AssignmentWait,
    Next,
    Step,
    step_after_error,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.primitive import GroupId, TopicName, i32, to_milliseconds


class MembershipState(Enum):
    JOINING = auto()
    MEMBER = auto()
    AWAY = auto()
    LEFT = auto()
    FAILED = auto()


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
        self.topics = tuple(dict.fromkeys(topics))
        self._rack_id = rack_id
        self._topics_are_known = False
        """Whether the coordinator knows `topics`; `_topics_sent` are those of the outstanding request."""
        self._topics_sent: tuple[str, ...] | None = None
        self._may_be_known = False
        """Whether the coordinator may know this member: true from its request on, not only from the
        answer."""
        self._wait = AssignmentWait()
        self._life = self._life_asked = 0
        """Counts the times that it goes and comes back: an answer from before does not count."""
        self._leave_is_due = False
        """While AWAY, whether the coordinator still has to be told."""

    @property
    def is_member(self) -> bool:
        return self.state is MembershipState.MEMBER

    @property
    def is_away(self) -> bool:
        """Whether it has left until `rejoin`."""
        return self.state is MembershipState.AWAY

    def subscribe(self, topics: Iterable[str]) -> None:
        """Subscribe to other topics with the next heartbeat; none only while the member is away."""
        self.topics = tuple(dict.fromkeys(topics))
        self._topics_are_known = False

    def suspend(self) -> bool:
        """Leave the group with the next heartbeat, until `rejoin`. Returns False if it has left before."""
        if self.state not in {MembershipState.JOINING, MembershipState.MEMBER}:
            return False
        self._leave_is_due = self._may_be_known
        self._life += 1
        self.state = MembershipState.AWAY
        self.assignment = frozenset()
        return True

    def rejoin(self) -> None:
        """Join again after `suspend`; does nothing in other states."""
        if self.state is MembershipState.AWAY:
            self._life += 1
            self._rejoin(at_once=True)

    def note_unanswered(self) -> None:
        """Does nothing: a share group's heartbeats may be repeated as they are."""

    def request(self) -> ShareGroupHeartbeatRequest | None:
        """The heartbeat to send now; None while AWAY."""
        self._life_asked = self._life
        if self.state is MembershipState.AWAY:
            return self._leave_request() if self._leave_is_due else None
        joins = self.state is MembershipState.JOINING
        self._may_be_known = True
        self._topics_sent = self.topics if joins or not self._topics_are_known else None
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
        return self._leave_request()

    def _leave_request(self) -> ShareGroupHeartbeatRequest:
        return ShareGroupHeartbeatRequest(
            group_id=GroupId(self.group_id), member_id=self.member_id, member_epoch=i32(LEAVE_EPOCH)
        )

    def handle(self, response: ShareGroupHeartbeatResponse) -> Step:
        """The next step after an answer to `request`. An answer that arrives after `leave` is ignored."""
        if self.state is MembershipState.LEFT:
            return Step(Next.STOP)
        if self._life_asked != self._life:
            return Step(Next.AT_ONCE)
        if self.state is MembershipState.AWAY:
            self._leave_is_due = False
            return Step(Next.WAIT, None)
        if response.error_code is ErrorCode.none:
            return self._go_on(response)
        return self._refused(response.error_code, response.error_message)

    def _go_on(self, response: ShareGroupHeartbeatResponse) -> Step:
        self.state = MembershipState.MEMBER
        self.member_epoch = response.member_epoch
        if self._topics_sent is not None:
            self._topics_are_known = self._topics_sent == self.topics
        if response.assignment is not None:
            self.assignment = frozenset(
                TopicIdPartition(topic.topic_id, index)
                for topic in response.assignment.topic_partitions
                if topic.topic_id is not None
                for index in topic.partitions
            )
        if not self._topics_are_known:
            return Step(Next.AT_ONCE)
        interval_ms = to_milliseconds(response.heartbeat_interval)
        return self._wait.step(interval_ms, is_assigned=bool(self.assignment))

    def _refused(self, code: ErrorCode, message: str | None) -> Step:
        was_member = self.state is MembershipState.MEMBER
        if code in REJOIN_CODES or (code is ErrorCode.group_id_not_found and was_member):
            return self._rejoin(at_once=was_member)
        step = step_after_error(code)
        if step.move is not Next.STOP:
            return step
        self.state = MembershipState.FAILED
        self.assignment = frozenset()
        self.error = joining_error(code, message)
        return step

    def _rejoin(self, *, at_once: bool) -> Step:
        """A member that is refused while joining waits, because it would otherwise loop."""
        self.state = MembershipState.JOINING
        self.member_epoch = JOIN_EPOCH
        self._may_be_known = False
        self.assignment = frozenset()
        self._wait.begin_anew()
        self._leave_is_due = False
        return Step(Next.AT_ONCE if at_once else Next.BACK_OFF)
