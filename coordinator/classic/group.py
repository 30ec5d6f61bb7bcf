"""A classic group: its members, its generation, its state (pure).

What there is and what follows from it. Which step comes next is `rebalance`'s to say, what a request may do
`membership`'s. A group without a protocol type is a "simple" one: offsets are kept under its name, and
nobody has ever joined it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from enum import Enum

from barnabas.coordinator.classic.member import ClassicMember
from barnabas.coordinator.classic.requests import NO_LEADER, JoinedMember, JoinResult, SyncResult
from barnabas.coordinator.classic.subscription import subscribed_topics
from barnabas.coordinator.replay.key_partition import absolute_hash
from barnabas.protocol.consumer_protocol import PROTOCOL_TYPE
from barnabas.protocol.errors import ApiError, ErrorCode


class ClassicGroupState(Enum):
    """The states that a group goes through, under Kafka's names."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    """Members are to join; those that do wait until all have, or the time is over."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """All were told of the generation; the leader is to send the assignment."""
    STABLE = "Stable"
    DEAD = "Dead"
    """There is no such group: how one is described that does not exist."""


class ClassicGroup:
    """One group. `state_since_ms` is the time of day at which it came into its state."""

    def __init__(self, group_id: str, state_since_ms: int) -> None:
        self.group_id = group_id
        self.id_hash = absolute_hash(group_id)
        self.state = ClassicGroupState.EMPTY
        self.state_since_ms = state_since_ms
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.pending_joins: set[str] = set()
        """Member ids that were given out and have not joined yet."""
        self.pending_syncs: set[str] = set()
        """Members that were told of this generation and have not synced yet."""
        self.subscribed_topics: frozenset[str] | None = None
        """What a stable group of consumers reads; None if that is not known, or they are no consumers."""
        self.is_initial = False
        """Whether members join a group that was empty: they are waited for a little longer."""
        self.joined_meanwhile = False
        """Whether a member has come since the wait of an initial rebalance was prolonged last."""
        self.wait_left_ms = 0
        """How much longer an initial rebalance may be prolonged."""
        self._static_member_ids: dict[str, str] = {}

    # What there is.

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
        """Whether a member with these protocols fits in: one of them is every member's."""
        if not self.members:
            return bool(protocol_type) and bool(names)
        return protocol_type == self.protocol_type and not self._common_protocols().isdisjoint(names)

    def select_protocol(self) -> str:
        """The protocol with most members' votes among those that all have."""
        candidates = self._common_protocols()
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def is_subscribed_to(self, topic_name: str) -> bool:
        """Whether the group reads the topic, as far as anybody can tell."""
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
        assert self.protocol_name is not None, "members are told of once a protocol is selected"
        return [
            JoinedMember(member.member_id, member.group_instance_id, member.protocols[self.protocol_name])
            for member in self.members.values()
        ]

    # How it changes.

    def enter(self, state: ClassicGroupState, wall_ms: int) -> None:
        self.state = state
        self.state_since_ms = wall_ms

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
        """A static member has come back under a new member id; whoever waits under the old one is fenced."""
        member = self.members.pop(member_id)
        member.answer_join(JoinResult(ErrorCode.fenced_instance_id, member_id))
        member.answer_sync(SyncResult(ErrorCode.fenced_instance_id))
        member.is_new = False
        return self._put_static(member, member_id, new_member_id)

    def restore_static(self, member_id: str, old_member_id: str) -> ClassicMember:
        """Undo `replace_static`, of which nothing could be written."""
        return self._put_static(self.members.pop(member_id), member_id, old_member_id)

    def elect_leader(self) -> bool:
        """Let a member lead that has joined, if the leader hasn't; False if nobody has."""
        if self.leader is None:
            return False
        if self.members[self.leader].awaits_join is not None:
            return True
        joined = [one.member_id for one in self.members.values() if one.awaits_join is not None]
        if not joined:
            return False
        self.leader = joined[0]
        return True

    def begin_generation(self, wall_ms: int) -> None:
        """The next generation, of the members that are there now."""
        self.generation_id += 1
        self.pending_syncs.clear()
        if self.members:
            self.protocol_name = self.select_protocol()
            self.enter(ClassicGroupState.COMPLETING_REBALANCE, wall_ms)
        else:
            self.protocol_name = None
            self.enter(ClassicGroupState.EMPTY, wall_ms)
        self.learn_subscriptions()

    def learn_subscriptions(self) -> None:
        """Find out which topics the members read, if they are consumers."""
        self.subscribed_topics = None
        if not self.uses_consumer_protocol:
            return
        if not self.members:
            self.subscribed_topics = frozenset()
        elif self.protocol_name is not None:
            self.subscribed_topics = subscribed_topics(one.metadata for one in self.joined_members())

    def result_for(self, member: ClassicMember) -> JoinResult:
        """What a member is told of this generation."""
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

    def assignment(self) -> Mapping[str, bytes]:
        """What each member was assigned, by member id."""
        return {member.member_id: member.assignment for member in self.members.values()}

    def _put_static(self, member: ClassicMember, member_id: str, new_member_id: str) -> ClassicMember:
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

    def _common_protocols(self) -> set[str]:
        first, *others = [set(member.protocols) for member in self.members.values()] or [set[str]()]
        return first.intersection(*others)
