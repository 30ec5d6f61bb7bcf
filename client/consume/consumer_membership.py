"""One member of a consumer group: a state machine over heartbeats and their answers (pure, KIP-848).

    state         meaning                                            leaves it by
    UNSUBSCRIBED  no topics: leaves if it was a member, then silent  `subscribe`
    JOINING       epoch 0 is sent, with everything                   an answer
    MEMBER        the coordinator's epoch is sent, with changes      an answer, `unsubscribe`, `suspend`
    FENCED        the coordinator does not know it: silent           `rejoin`, without its partitions
    AWAY          the application is slow: leaves, then silent       `rejoin`, with the next poll
    LEFT          the consumer is closed                             -
    FAILED        the error is lasting; see `error`                  -

`assignment` is the target, `owned` are the partitions that the member has. `reconciliation` moves `owned`
towards the target and reports each step with `acknowledge`: only then the coordinator gives revoked
partitions to other members. `Heartbeats` sends the requests. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import Final, NamedTuple

from barnabas.client.consume.ownership import Ownership, assigned, reported
from barnabas.client.errors import BrokerError, joining_error
from barnabas.client.group.member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    REJOIN_CODES,
    STATIC_LEAVE_EPOCH,
    AssignmentWait,
    Next,
    Step,
    step_after_error,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.extended.consumer_group_heartbeat_v1 import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.protocol.primitive import GroupId, TopicName, i32, milliseconds, to_milliseconds

_UNCHANGED_TIMEOUT: Final = milliseconds(-1)
_NONE: Final[frozenset[Ownership]] = frozenset()


class ConsumerState(Enum):
    UNSUBSCRIBED = auto()
    JOINING = auto()
    MEMBER = auto()
    FENCED = auto()
    AWAY = auto()
    LEFT = auto()
    FAILED = auto()


_ACTIVE: Final = frozenset({ConsumerState.JOINING, ConsumerState.MEMBER})


class Subscription(NamedTuple):
    """Topics by name, or by a regular expression in RE2 syntax, which the broker evaluates."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None

    @property
    def is_empty(self) -> bool:
        return not self.topics and self.pattern is None


class MemberProfile(NamedTuple):
    """The properties of a member that do not change."""

    group_id: str
    member_id: str
    rebalance_timeout_ms: int
    """How long the coordinator waits for the member to give up partitions."""
    instance_id: str | None = None
    """Makes the member a static one (KIP-345)."""
    rack_id: str | None = None
    server_assignor: str | None = None
    individual_commit: bool = False
    """The member can share partitions with others; every heartbeat says so."""


class _Known(NamedTuple):
    """The changing properties, as the coordinator knows them."""

    subscription: Subscription
    owned: frozenset[Ownership]


class ConsumerMembership:
    """One member."""

    def __init__(self, profile: MemberProfile, subscription: Subscription) -> None:
        self.profile = profile
        self.subscription = subscription
        self.state = ConsumerState.UNSUBSCRIBED if subscription.is_empty else ConsumerState.JOINING
        self.member_epoch = JOIN_EPOCH
        self.assignment = _NONE
        self.owned = _NONE
        self.error: BrokerError | None = None
        self.life = 0
        """Counts the memberships: an answer, or a reconciliation, of an earlier one does not count."""
        self._life_asked = 0
        self._known: _Known | None = None
        """None if it is uncertain; then everything is sent."""
        self._sent: _Known | None = None
        self._has_had_regex = subscription.pattern is not None
        self._may_be_known = False
        """Whether the coordinator may know this member: true from its request on, not only from the
        answer."""
        self._leave_is_due = False
        self._wait = AssignmentWait()

    @property
    def group_id(self) -> str:
        return self.profile.group_id

    @property
    def is_member(self) -> bool:
        return self.state is ConsumerState.MEMBER

    @property
    def is_out(self) -> bool:
        """Whether its partitions are lost, and it waits for `rejoin`."""
        return self.state in {ConsumerState.FENCED, ConsumerState.AWAY}

    def subscribe(self, subscription: Subscription) -> None:
        """Subscribe to other topics; none leaves the group."""
        self.subscription = subscription
        self._has_had_regex |= subscription.pattern is not None
        if subscription.is_empty:
            if self.state in _ACTIVE or self.is_out:
                self._go(ConsumerState.UNSUBSCRIBED)
        elif self.state is ConsumerState.UNSUBSCRIBED:
            self._join()

    def suspend(self) -> bool:
        """Leave the group until `rejoin`. Returns False if it has left before."""
        if self.state not in _ACTIVE:
            return False
        self._go(ConsumerState.AWAY)
        return True

    def rejoin(self) -> None:
        """Join after the partitions were lost."""
        if self.is_out:
            self._join()

    def acknowledge(self, owned: Iterable[Ownership]) -> None:
        """The member has exactly these partitions now."""
        self.owned = frozenset(owned)

    def note_unanswered(self) -> None:
        """The last request may or may not have arrived: the next one contains everything."""
        self._known = None

    def request(self) -> ConsumerGroupHeartbeatRequest | None:
        """The heartbeat to send now; None if there is nothing to send."""
        self._life_asked = self.life
        if self.state not in _ACTIVE:
            return self._leave_request() if self._leave_is_due else None
        self._may_be_known = True
        profile, known = self.profile, self._known
        self._sent = _Known(self.subscription, self.owned)
        tells_topics = known is None or known.subscription != self.subscription
        tells_owned = known is None or known.owned != self.owned
        return ConsumerGroupHeartbeatRequest(
            group_id=GroupId(profile.group_id),
            member_id=profile.member_id,
            member_epoch=i32(self.member_epoch),
            instance_id=profile.instance_id,
            rack_id=profile.rack_id if known is None else None,
            rebalance_timeout=(
                milliseconds(profile.rebalance_timeout_ms) if known is None else _UNCHANGED_TIMEOUT
            ),
            subscribed_topic_names=(
                tuple(TopicName(topic) for topic in self.subscription.topics) if tells_topics else None
            ),
            subscribed_topic_regex=(
                self.subscription.pattern or "" if tells_topics and self._has_had_regex else None
            ),
            server_assignor=profile.server_assignor if known is None else None,
            topic_partitions=reported(self.owned) if tells_owned else None,
            individual_commit=profile.individual_commit,
        )

    def leave(self) -> ConsumerGroupHeartbeatRequest | None:
        """The last heartbeat; None if the coordinator cannot know this member."""
        if self.state in _ACTIVE:
            self._go(ConsumerState.LEFT)
        self.state = ConsumerState.LEFT
        return self._leave_request() if self._leave_is_due else None

    def handle(self, response: ConsumerGroupHeartbeatResponse) -> Step:
        """The next step after an answer to `request`."""
        if self.state is ConsumerState.LEFT:
            return Step(Next.STOP)
        if self._life_asked != self.life:
            return Step(Next.AT_ONCE)
        if self.state not in _ACTIVE:
            self._leave_is_due = False
            return Step(Next.WAIT, None)
        if response.error_code is ErrorCode.none:
            return self._go_on(response)
        return self._refused(response.error_code, response.error_message)

    def _go_on(self, response: ConsumerGroupHeartbeatResponse) -> Step:
        self.state = ConsumerState.MEMBER
        self.member_epoch = response.member_epoch
        self._known = self._sent
        if response.assignment is not None:
            self.assignment = assigned(response.assignment)
        if self._known != (self.subscription, self.owned):
            return Step(Next.AT_ONCE)
        interval_ms = to_milliseconds(response.heartbeat_interval)
        return self._wait.step(interval_ms, is_assigned=bool(self.assignment))

    def _refused(self, code: ErrorCode, message: str | None) -> Step:
        was_member = self.is_member
        if code in REJOIN_CODES or (code is ErrorCode.group_id_not_found and was_member):
            self._may_be_known = False
            self._go(ConsumerState.FENCED)
            if was_member:
                return Step(Next.WAIT, None)
            # Nothing is lost by a member that was refused while joining. It waits, or it would loop.
            self._join()
            return Step(Next.BACK_OFF)
        step = step_after_error(code)
        self._known = None
        if step.move is Next.STOP:
            self._go(ConsumerState.FAILED)
            self.error = joining_error(code, message)
        return step

    def _go(self, state: ConsumerState) -> None:
        """End the membership. `owned` stays until the partitions are given up."""
        self.state = state
        self.life += 1
        self.assignment = _NONE
        self._leave_is_due = self._may_be_known
        self._may_be_known = False

    def _join(self) -> None:
        self.state = ConsumerState.JOINING
        self.life += 1
        self.member_epoch = JOIN_EPOCH
        self.owned = _NONE
        self._known = None
        self._leave_is_due = False
        self._wait.begin_anew()

    def _leave_request(self) -> ConsumerGroupHeartbeatRequest:
        is_static = self.profile.instance_id is not None
        return ConsumerGroupHeartbeatRequest(
            group_id=GroupId(self.profile.group_id),
            member_id=self.profile.member_id,
            member_epoch=i32(STATIC_LEAVE_EPOCH if is_static else LEAVE_EPOCH),
            instance_id=self.profile.instance_id,
            topic_partitions=None,
            individual_commit=self.profile.individual_commit,
        )
