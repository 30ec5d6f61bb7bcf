"""Members of the classic protocol in consumer groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup (KIP-848).

While a group migrates from one protocol to the other it has members of both. For a member of the classic
protocol its epoch is the generation. There is no leader, and no member waits for others: a JoinGroup is
answered at once, and the SyncGroup after it with the assignment of the coordinator. A member that is to join
again learns so by its next heartbeat. The checks and their order are Apache Kafka 4.3's.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.coordinator.assignor.assignment import EMPTY_ASSIGNMENT
from barnabas.coordinator.classic.membership import JoinReply, SyncReply
from barnabas.coordinator.classic.requests import (
    UNKNOWN_MEMBER_ID,
    JoinRequest,
    JoinResult,
    LeftMember,
    SyncRequest,
    SyncResult,
)
from barnabas.coordinator.consumer import migration
from barnabas.coordinator.consumer.consumer_group import ConsumerGroup
from barnabas.coordinator.consumer.handover import Handover
from barnabas.coordinator.consumer.interfaces import ClassicGroups
from barnabas.coordinator.consumer.member import ClassicMetadata, ConsumerMember, MemberState
from barnabas.coordinator.consumer.member_change import MemberChange
from barnabas.coordinator.consumer.membership import Membership, Subscriber
from barnabas.coordinator.consumer.reconciliation import Owned
from barnabas.coordinator.consumer.record_factory import group_tombstones
from barnabas.coordinator.consumer.registry import ConsumerRegistry
from barnabas.coordinator.consumer.settings import ConsumerSettings, MigrationPolicy
from barnabas.coordinator.consumer.timers import ConsumerTimers
from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.coordinator.group.records import AnyGroupRecord
from barnabas.coordinator.group.steps import Steps
from barnabas.coordinator.replay.interfaces import TopicCatalog
from barnabas.coordinator.replay.steps import Write
from barnabas.protocol.consumer_protocol import PROTOCOL_TYPE, Subscription
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.runtime.moment import Moment


class ClassicMembers:
    """The `ConsumerGroups` of the classic coordinator."""

    def __init__(
        self,
        groups: ConsumerRegistry,
        membership: Membership,
        timers: ConsumerTimers,
        classic_groups: ClassicGroups,
        catalog: TopicCatalog,
        handover: Handover,
        settings: ConsumerSettings,
    ) -> None:
        self._groups = groups
        self._membership = membership
        self._timers = timers
        self._classic_groups = classic_groups
        self._catalog = catalog
        self._handover = handover
        self._settings = settings

    def exists(self, group_id: str) -> bool:
        return self._groups.get(group_id) is not None

    def has_members(self, group_id: str) -> bool:
        group = self._groups.get(group_id)
        return group is not None and bool(group.members)

    def tombstones(self, group_id: str) -> list[AnyGroupRecord]:
        group = self._groups.get(group_id)
        if group is None:
            return []
        if group.members:
            raise ApiError(ErrorCode.non_empty_group, f"Group {group_id} has members.")
        return [*group_tombstones(group, ())]

    # JoinGroup

    def join(self, request: JoinRequest, reply: JoinReply, moment: Moment) -> Steps[None]:
        try:
            yield from self._join(self._groups.existing(request.group_id), request, reply, moment)
        except ApiError as error:
            # Kafka sends no member id with these errors.
            reply.complete(JoinResult(error.code, UNKNOWN_MEMBER_ID))

    def _join(
        self, group: ConsumerGroup, request: JoinRequest, reply: JoinReply, moment: Moment
    ) -> Steps[None]:
        is_unknown = request.member_id == UNKNOWN_MEMBER_ID
        member_id = self._membership.new_member_id() if is_unknown else request.member_id
        self._check_join(group, member_id, request)
        if is_unknown and request.group_instance_id is None and request.requires_known_member_id:
            reply.complete(JoinResult(ErrorCode.member_id_required, member_id))
            return
        subscription = migration.read_subscription(request.protocols)
        subscriber = self._subscriber(group, member_id, request)
        change = self._change(group, subscriber, subscription, request, moment)
        owned = migration.assignment_of(subscription.owned_partitions, self._catalog)
        existing = group.static_member(request.group_instance_id)
        if existing is not None and migration.may_become_classic_by(group, existing, self._settings):
            yield from self._join_and_downgrade(group, existing, subscriber, change, owned, moment)
        else:
            change.step(change.decide_target(), owned)
            yield from self._membership.write([*subscriber.records, *change.records])
            self._membership.note_changed(group, change, subscriber, moment)
            self._timers.joined(group.group_id, change.member, moment.now_ms)
        reply.complete(_joined(change.member))

    def _check_join(self, group: ConsumerGroup, member_id: str, request: JoinRequest) -> None:
        if self._settings.migration_policy is MigrationPolicy.DISABLED:
            message = f"Group {group.group_id} takes no members of the classic protocol."
            raise ApiError(ErrorCode.inconsistent_group_protocol, message)
        self._membership.check_room(group, member_id, request.group_instance_id)
        if request.protocol_type != PROTOCOL_TYPE or not _fits(group, request):
            message = f"Member {member_id}'s protocols are not supported."
            raise ApiError(ErrorCode.inconsistent_group_protocol, message)

    def _subscriber(self, group: ConsumerGroup, member_id: str, request: JoinRequest) -> Subscriber:
        instance_id = request.group_instance_id
        if instance_id is None:
            return Subscriber(self._membership.dynamic_member(group, member_id, may_be_new=True), [])
        if request.member_id == UNKNOWN_MEMBER_ID:
            return self._membership.joining_static(group, member_id, instance_id, is_classic=True)
        return Subscriber(self._membership.static_member(group, member_id, instance_id), [])

    def _change(
        self,
        group: ConsumerGroup,
        subscriber: Subscriber,
        subscription: Subscription,
        request: JoinRequest,
        moment: Moment,
    ) -> MemberChange:
        before = subscriber.member
        instance_id = request.group_instance_id
        after = before._replace(
            instance_id=before.instance_id if instance_id is None else instance_id,
            rack_id=subscription.rack_id or before.rack_id,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            subscribed_topic_names=frozenset(subscription.topics),
            subscribed_topic_regex="",
            client_id=request.client_id,
            client_host=request.client_host,
            classic=ClassicMetadata(request.session_timeout_ms, tuple(request.protocols.items())),
            individual_commit=False,
        )
        change = self._membership.change(group, before, after, moment, subscriber.replaced)
        change.note()
        change.decide_epoch(bump=change.subscription_changed)
        return change

    def _join_and_downgrade(
        self,
        group: ConsumerGroup,
        existing: ConsumerMember,
        subscriber: Subscriber,
        change: MemberChange,
        owned: Owned,
        moment: Moment,
    ) -> Steps[None]:
        """The last member of the consumer protocol comes back with the classic one, with its instance id."""
        must_rebalance = group.assignment_epoch < change.group_epoch
        if not must_rebalance:
            change.step(change.last_target(), owned)
        classic, records = migration.downgraded(
            group, (), self._catalog, moment, joining=change.member, replaced=existing
        )
        member_ids = list(group.members)
        yield Write([*subscriber.records, *change.records, *records])
        for member_id in member_ids:
            self._timers.forget(group.group_id, member_id)
        yield from self._classic_groups.adopt(classic, moment, rebalance=must_rebalance)

    # SyncGroup, Heartbeat, LeaveGroup

    def sync(self, request: SyncRequest, reply: SyncReply, moment: Moment) -> None:
        """The member asks for its assignment."""
        group = self._groups.existing(request.group_id)
        member = self._member(group, MemberIdentity(request.member_id, request.group_instance_id))
        classic = _check_classic(member)
        _check_generation(member, request.generation_id)
        name, metadata = classic.protocols[0]
        asked = ((request.protocol_type, PROTOCOL_TYPE), (request.protocol_name, name))
        if any(named is not None and named != expected for named, expected in asked):
            message = "The member has joined with another protocol."
            raise ApiError(ErrorCode.inconsistent_group_protocol, message)
        is_revoking = member.state is MemberState.UNREVOKED_PARTITIONS
        if group.assignment_epoch > member.member_epoch and not is_revoking:
            self._timers.expect_join(group.group_id, member, moment.now_ms)
            raise ApiError(ErrorCode.rebalance_in_progress, "The member has to join again.")
        self._timers.synced(group.group_id, member, moment.now_ms)
        plain = {topic_id: tuple(epochs) for topic_id, epochs in member.assigned.items()}
        assignment = migration.encoded_assignment(plain, metadata, self._catalog)
        reply.complete(SyncResult(ErrorCode.none, request.protocol_type, request.protocol_name, assignment))

    def heartbeat(
        self, group_id: str, identity: MemberIdentity, generation_id: int, moment: Moment
    ) -> ErrorCode:
        """The code of the answer: none, or REBALANCE_IN_PROGRESS. ApiError for an unknown member."""
        group = self._groups.existing(group_id)
        member = self._member(group, identity)
        _check_classic(member)
        _check_generation(member, generation_id)
        self._timers.expect_heartbeat(group.group_id, member, moment.now_ms)
        if not self._should_join_again(group, member):
            return ErrorCode.none
        self._timers.expect_join(group.group_id, member, moment.now_ms)
        return ErrorCode.rebalance_in_progress

    def leave(
        self, group_id: str, identities: Sequence[MemberIdentity], moment: Moment
    ) -> Steps[list[LeftMember]]:
        """Remove members that leave, or that an administrator names by instance id, with one append."""
        group = self._groups.existing(group_id)
        left: list[LeftMember] = []
        members: dict[str, ConsumerMember] = {}
        for identity in identities:
            try:
                member = self._leaving(group, identity)
            except ApiError as error:
                left.append(LeftMember(identity, error.code))
            else:
                members[member.member_id] = member
                left.append(LeftMember(identity, ErrorCode.none))
        yield from self._membership.remove(group, list(members.values()), moment)
        return left

    def _leaving(self, group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
        member = group.static_member(identity.group_instance_id)
        if member is not None and identity.member_id == UNKNOWN_MEMBER_ID:
            return member
        return self._member(group, identity)

    def _member(self, group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
        if identity.group_instance_id is None:
            return self._membership.dynamic_member(group, identity.member_id, may_be_new=False)
        return self._membership.static_member(group, identity.member_id, identity.group_instance_id)

    def _should_join_again(self, group: ConsumerGroup, member: ConsumerMember) -> bool:
        """Whether a rebalance would bring the member to the target's epoch, or change its partitions."""
        match member.state:
            case MemberState.UNREVOKED_PARTITIONS:
                return True
            case MemberState.UNRELEASED_PARTITIONS if not self._waits_for_others(group, member):
                return True
            case _:
                return member.member_epoch < group.assignment_epoch

    def _waits_for_others(self, group: ConsumerGroup, member: ConsumerMember) -> bool:
        return any(
            partition not in member.assigned.get(topic_id, {})
            and self._handover.is_taken(group, member.member_id, topic_id, partition)
            for topic_id, partitions in group.target.get(member.member_id, EMPTY_ASSIGNMENT).items()
            for partition in partitions
        )


def _fits(group: ConsumerGroup, request: JoinRequest) -> bool:
    """Whether all classic members support one of the protocols."""
    theirs = [member.classic.protocols for member in group.members.values() if member.classic is not None]
    return any(all(name in dict(protocols) for protocols in theirs) for name in request.protocols)


def _joined(member: ConsumerMember) -> JoinResult:
    assert member.classic is not None
    return JoinResult(
        ErrorCode.none,
        member.member_id,
        member.member_epoch,
        PROTOCOL_TYPE,
        member.classic.protocols[0][0],
    )


def _check_classic(member: ConsumerMember) -> ClassicMetadata:
    if member.classic is None:
        message = f"Member {member.member_id} does not use the classic protocol."
        raise ApiError(ErrorCode.unknown_member_id, message)
    return member.classic


def _check_generation(member: ConsumerMember, generation_id: int) -> None:
    if generation_id != member.member_epoch:
        raise ApiError(ErrorCode.illegal_generation, f"The generation is {member.member_epoch}.")
