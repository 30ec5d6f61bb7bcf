"""A classic group: its members, its generation, its state. Pure.

The log keeps the last generation that became stable or empty, and `replay` alone takes that over. Everything
in between is kept in memory only: who joins, who is awaited, a generation that has begun and waits for its
assignment. A restart goes back to the generation in the log.

`rebalance` decides the next step, `membership` the outcome of a request. A group without a protocol type is a
"simple" one: offsets are kept under its id, and no member has ever joined it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from enum import Enum

from barnabas.coordinator.classic.member import ClassicMember
from barnabas.coordinator.classic.requests import NO_LEADER, JoinedMember, JoinResult, SyncResult
from barnabas.coordinator.classic.subscription import subscribed_topics
from barnabas.coordinator.replay.key_partition import absolute_hash
from barnabas.protocol.classic_group_records import GroupMetadataValue, MemberMetadata
from barnabas.protocol.consumer_protocol import PROTOCOL_TYPE
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.runtime.moment import Moment, MonotonicOf


class ClassicGroupState(Enum):
    """The states that a group goes through, under Kafka's names."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    """Members are to join; each JoinGroup waits until all have joined or the time is over."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """All JoinGroups were answered with the generation; the leader is to send the assignment."""
    STABLE = "Stable"
    DEAD = "Dead"
    """The description of a group that does not exist."""


class ClassicGroup:
    """One group. `state_since` is when it entered its state."""

    def __init__(self, group_id: str, state_since: Moment) -> None:
        self.group_id = group_id
        self.id_hash = absolute_hash(group_id)
        self.state = ClassicGroupState.EMPTY
        self.state_since = state_since
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.pending_joins: set[str] = set()
        """Member ids that were given out and have not joined yet."""
        self.pending_syncs: set[str] = set()
        """Members that know this generation and have not synced yet."""
        self.subscribed_topics: frozenset[str] | None = None
        """The topics that a group of consumers reads; None if they are unknown, or it has another protocol.
        """
        self.is_initial = False
        """Whether members join a group that was empty: the group waits a little longer for more of them."""
        self.joined_meanwhile = False
        """Whether a member has joined since the wait of an initial rebalance was last extended."""
        self.wait_left_ms = 0
        """How much longer the wait of an initial rebalance may become."""
        self._static_member_ids: dict[str, str] = {}

    # Questions

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == PROTOCOL_TYPE

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long the slowest member may take to join again."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def awaiting_join_count(self) -> int:
        return sum(member.awaits_join is not None for member in self.members.values())

    @property
    def all_have_joined(self) -> bool:
        return not self.pending_joins and self.awaiting_join_count == len(self.members)

    def static_member_id(self, group_instance_id: str | None) -> str | None:
        """The member id behind an instance id."""
        return None if group_instance_id is None else self._static_member_ids.get(group_instance_id)

    def supports(self, protocol_type: str, names: Collection[str]) -> bool:
        """Whether a member with these protocols may join: every member supports one of them."""
        if not self.members:
            return bool(protocol_type) and bool(names)
        return protocol_type == self.protocol_type and not self._common_protocols().isdisjoint(names)

    def select_protocol(self) -> str:
        """The protocol with the votes of most members, among those that all members support."""
        return _elected([member.protocols for member in self.members.values()])

    def keeps_protocol(self, member_id: str, protocols: Mapping[str, bytes]) -> bool:
        """Whether the group's protocol would be selected again if this member had these protocols."""
        others = [member.protocols for member in self.members.values() if member.member_id != member_id]
        return _elected([*others, protocols]) == self.protocol_name

    def is_subscribed_to(self, topic_name: str) -> bool:
        """Whether the group may read the topic: true for consumers whose topics are unknown."""
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic_name in self.subscribed_topics

    def check_member(self, member_id: str, group_instance_id: str | None) -> ClassicMember:
        """The member; UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if another has taken its instance id."""
        if group_instance_id is not None:
            existing_id = self._static_member_ids.get(group_instance_id)
            if existing_id is not None and existing_id != member_id:
                raise ApiError(ErrorCode.fenced_instance_id, "Another member has this instance id now.")
            if existing_id is None:
                raise ApiError(ErrorCode.unknown_member_id, "The group has no such static member.")
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(ErrorCode.unknown_member_id, "The group has no such member.")
        return member

    def joined_members(self) -> list[JoinedMember]:
        """All members with their metadata for the protocol that was selected."""
        assert self.protocol_name is not None, "a protocol is selected before members are listed"
        return [
            JoinedMember(member.member_id, member.group_instance_id, member.protocols[self.protocol_name])
            for member in self.members.values()
        ]

    # Changes in memory

    def enter(self, state: ClassicGroupState, moment: Moment) -> None:
        self.state = state
        self.state_since = moment

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        """A new member; the first one becomes the leader."""
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            self._static_member_ids[member.group_instance_id] = member.member_id
        self.pending_joins.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        """Forget a member, or one that was about to join; another one leads if it was the leader."""
        member = self.members.pop(member_id, None)
        if member is not None and member.group_instance_id is not None:
            del self._static_member_ids[member.group_instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_joins.discard(member_id)
        self.pending_syncs.discard(member_id)

    def replace_static(self, member_id: str, new_member_id: str) -> ClassicMember:
        """A static member has come back under a new member id; requests that wait under the old one are
        fenced.
        """
        member = self.members.pop(member_id)
        member.refuse(ErrorCode.fenced_instance_id, member_id)
        member.is_new = False
        assert member.group_instance_id is not None
        member.member_id = new_member_id
        if member_id in self.pending_syncs:
            self.pending_syncs.remove(member_id)
            self.pending_syncs.add(new_member_id)
        self.members[new_member_id] = member
        self._static_member_ids[member.group_instance_id] = new_member_id
        if self.leader == member_id:
            self.leader = new_member_id
        return member

    def elect_leader(self) -> bool:
        """Replace a leader that has not joined by a member that has; False if no member has joined."""
        if self.leader is None:
            return False
        if self.members[self.leader].awaits_join is not None:
            return True
        joined = [member.member_id for member in self.members.values() if member.awaits_join is not None]
        if not joined:
            return False
        self.leader = joined[0]
        return True

    def begin_generation(self, moment: Moment) -> None:
        """The next generation, with the present members. It is not in the log before it is stable."""
        self.generation_id += 1
        self.pending_syncs.clear()
        self.protocol_name = self.select_protocol()
        self.enter(ClassicGroupState.COMPLETING_REBALANCE, moment)
        self._learn_subscriptions()

    # Replay

    def replay(self, value: GroupMetadataValue, monotonic_of: MonotonicOf) -> None:
        """Take over a generation that is in the log. Members keep the requests that they wait for."""
        self.generation_id = value.generation
        self.protocol_type = value.protocol_type or None
        self.protocol_name = value.protocol
        self.leader = value.leader
        self.state = ClassicGroupState.STABLE if value.members else ClassicGroupState.EMPTY
        self.state_since = state_since(value, monotonic_of)
        self._replay_members(value.members, value.protocol or "")
        self._learn_subscriptions()

    def _replay_members(self, stored_members: Iterable[MemberMetadata], protocol_name: str) -> None:
        members: dict[str, ClassicMember] = {}
        pending_syncs: set[str] = set()
        for stored in stored_members:
            # A static member may have a new member id.
            known_id = self.static_member_id(stored.group_instance_id) or stored.member_id
            if known_id in self.pending_syncs:
                pending_syncs.add(stored.member_id)
            member = self.members.get(known_id) or ClassicMember(member_id=stored.member_id)
            member.replay(stored, protocol_name)
            members[stored.member_id] = member
        self.members = members
        self.pending_syncs = pending_syncs
        self._static_member_ids = {
            member.group_instance_id: member.member_id
            for member in members.values()
            if member.group_instance_id is not None
        }

    def _learn_subscriptions(self) -> None:
        """Find out which topics the members read, if they are consumers."""
        self.subscribed_topics = None
        if not self.uses_consumer_protocol:
            return
        if not self.members:
            self.subscribed_topics = frozenset()
        elif self.protocol_name is not None:
            self.subscribed_topics = subscribed_topics(member.metadata for member in self.joined_members())

    # Answers

    def result_for(self, member: ClassicMember) -> JoinResult:
        """The answer to a member's JoinGroup, with this generation."""
        leads = self.leader == member.member_id
        return JoinResult(
            ErrorCode.none,
            member.member_id,
            self.generation_id,
            self.protocol_type,
            self.protocol_name,
            self.leader or NO_LEADER,
            members=self.joined_members() if leads else (),
        )

    def sync_result(self, member: ClassicMember) -> SyncResult:
        """The answer to a member's SyncGroup, with its assignment."""
        return SyncResult(ErrorCode.none, self.protocol_type, self.protocol_name, member.assignment)

    def assignment(self) -> Mapping[str, bytes]:
        """The assignment of each member, by member id."""
        return {member.member_id: member.assignment for member in self.members.values()}

    def _common_protocols(self) -> set[str]:
        return _common(member.protocols for member in self.members.values())


def state_since(value: GroupMetadataValue, monotonic_of: MonotonicOf) -> Moment:
    """When the group entered the state in the record."""
    recorded_ms = value.current_state_timestamp_ms
    return Moment(monotonic_of(recorded_ms), recorded_ms)


def _common(offers: Iterable[Collection[str]]) -> set[str]:
    """The protocols that are in every offer; none without an offer."""
    first, *others = [set(offer) for offer in offers] or [set[str]()]
    return first.intersection(*others)


def _elected(offers: Collection[Collection[str]]) -> str:
    """The protocol with the most votes. Each member votes for its favourite among those that all support."""
    candidates = _common(offers)
    votes = Counter(next(name for name in offer if name in candidates) for offer in offers)
    return votes.most_common(1)[0][0]
