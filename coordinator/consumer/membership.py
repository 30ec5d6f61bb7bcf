"""The operations of members on consumer groups, step by step: heartbeat, leave, timeouts.

`heartbeat.py` and `member_change.py` decide on the records. This module converts a classic group before that,
and updates the soft state (timers, known changes of topics) after the records are in the log.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Collection
from typing import NamedTuple
from uuid import UUID

from barnabas.coordinator.assignor.assignment import EMPTY_ASSIGNMENT
from barnabas.coordinator.classic.group import ClassicGroup, ClassicGroupState
from barnabas.coordinator.classic.record_factory import deleted_group
from barnabas.coordinator.consumer import migration
from barnabas.coordinator.consumer.consumer_group import ConsumerGroup
from barnabas.coordinator.consumer.handover import Handover
from barnabas.coordinator.consumer.heartbeat import (
    HeartbeatRequest,
    HeartbeatResult,
    check_epoch,
    result_of,
    updated_member,
)
from barnabas.coordinator.consumer.interfaces import ClassicGroups, TopicDirectory
from barnabas.coordinator.consumer.member import (
    JOIN_EPOCH,
    NO_MEMBER,
    NO_PARTITIONS,
    STATIC_LEAVE_EPOCH,
    ConsumerMember,
    MemberState,
)
from barnabas.coordinator.consumer.member_change import Circumstances, MemberChange, RegexChange
from barnabas.coordinator.consumer.record_factory import (
    current_member_assignment,
    group_metadata,
    member_metadata,
    member_tombstones,
    regular_expression_tombstone,
    target_assignment_member,
    target_assignment_metadata,
)
from barnabas.coordinator.consumer.registry import ConsumerRegistry
from barnabas.coordinator.consumer.settings import ConsumerSettings
from barnabas.coordinator.consumer.sharing import NO_SHARES
from barnabas.coordinator.consumer.timers import ConsumerTimers
from barnabas.coordinator.group.last_assignment import NEVER_ASSIGNED
from barnabas.coordinator.group.membership_configs import MembershipConfigs
from barnabas.coordinator.group.metadata_hash import metadata_hash
from barnabas.coordinator.group.records import AnyGroupRecord
from barnabas.coordinator.group.steps import Steps
from barnabas.coordinator.group.timers import Timer, TimerKind
from barnabas.coordinator.replay.steps import Write
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.runtime.moment import Moment


class Opened(NamedTuple):
    """The group that a member joins, and the records that create it."""

    group: ConsumerGroup
    records: list[AnyGroupRecord]
    from_classic: ClassicGroup | None = None
    """The classic group from which it was converted."""


class Subscriber(NamedTuple):
    """The member of a request, as it was; a new one has no subscription."""

    member: ConsumerMember
    records: list[AnyGroupRecord]
    replaced: ConsumerMember | None = None
    """The static member that it replaces."""


class Membership:
    """Members' operations over the groups of one registry."""

    def __init__(
        self,
        registry: ConsumerRegistry,
        timers: ConsumerTimers,
        catalog: TopicDirectory,
        classic_groups: ClassicGroups,
        handover: Handover,
        configs: MembershipConfigs,
        settings: ConsumerSettings,
        new_uuid: Callable[[], UUID],
    ) -> None:
        self._handover = handover
        self._registry = registry
        self._timers = timers
        self._catalog = catalog
        self._classic_groups = classic_groups
        self._configs = configs
        self._settings = settings
        self._new_uuid = new_uuid
        self.topics_came_at = catalog.version()
        """The version of the catalog at which the last topic was created."""
        self.on_regexes_due: Callable[[str, Collection[str]], None] = lambda _group_id, _regexes: None
        """Called with a group's id and its regular expressions when they have to be resolved."""

    # Heartbeat

    def heartbeat(self, request: HeartbeatRequest, moment: Moment) -> Steps[HeartbeatResult]:
        """A valid heartbeat of a member that joins or stays."""
        opened = self._open(request, moment)
        group = opened.group
        self.check_room(group, request.member_id, request.instance_id)
        subscriber = self._subscriber(group, request)
        before = subscriber.member
        after = updated_member(before, request)
        change = self.change(group, before, after, moment, subscriber.replaced)
        change.note()
        is_resolved = change.regex_change is RegexChange.RESOLVED
        change.decide_epoch(
            bump=change.names_changed or is_resolved or change.sharing_changed or change.changes_assignor()
        )
        change.step(change.decide_target(), request.owned)
        yield from self.write([*opened.records, *subscriber.records, *change.records])
        if opened.from_classic is not None:
            self._classic_groups.release(opened.from_classic)
            for member in group.members.values():
                self._timers.expect_heartbeat(group.group_id, member, moment.now_ms)
        self.note_changed(group, change, subscriber, moment)
        self._timers.expect_heartbeat(group.group_id, change.member, moment.now_ms)
        interval_ms = self._configs.heartbeat_interval_ms(group.group_id)
        return result_of(request, before, change.member, interval_ms)

    def _open(self, request: HeartbeatRequest, moment: Moment) -> Opened:
        group_id = request.group_id
        group = self._registry.get(group_id)
        if group is not None or request.member_epoch != JOIN_EPOCH:
            return Opened(group or self._registry.existing(group_id), [])
        classic = self._classic_groups.find(group_id)
        if classic is None:
            return Opened(self._registry.new(group_id), [])
        if classic.state is ClassicGroupState.EMPTY:
            return Opened(ConsumerGroup(group_id), [deleted_group(group_id)], classic)
        upgraded, records = migration.upgraded(classic, self._settings, self._catalog, moment)
        return Opened(upgraded, records, classic)

    def check_room(self, group: ConsumerGroup, member_id: str, instance_id: str | None) -> None:
        """GROUP_MAX_SIZE_REACHED if the group is full and has no such member, and no static member that
        returns.
        """
        returns = instance_id is not None and group.static_member(instance_id) is not None
        is_member = returns or member_id in group.members
        if not is_member and len(group.members) >= self._settings.max_size:
            message = (
                f"The consumer group has reached its maximum capacity of {self._settings.max_size} members."
            )
            raise ApiError(ErrorCode.group_max_size_reached, message)

    def _subscriber(self, group: ConsumerGroup, request: HeartbeatRequest) -> Subscriber:
        joins = request.member_epoch == JOIN_EPOCH
        member_id = request.member_id or self.new_member_id()
        if request.instance_id is None:
            member = self.dynamic_member(group, member_id, may_be_new=joins)
        elif joins:
            return self.joining_static(group, member_id, request.instance_id, is_classic=False)
        else:
            member = self.static_member(group, member_id, request.instance_id)
        check_epoch(member, request.member_epoch, request.owned)
        return Subscriber(member, [])

    # Finding the member

    def new_member_id(self) -> str:
        """As Kafka writes ids: 22 characters of base64."""
        return urlsafe_b64encode(self._new_uuid().bytes).decode().rstrip("=")

    def dynamic_member(self, group: ConsumerGroup, member_id: str, *, may_be_new: bool) -> ConsumerMember:
        """UNKNOWN_MEMBER_ID."""
        member = group.members.get(member_id)
        if member is None and not may_be_new:
            message = f"Member {member_id} is not a member of group {group.group_id}."
            raise ApiError(ErrorCode.unknown_member_id, message)
        return member or ConsumerMember(member_id)

    def static_member(self, group: ConsumerGroup, member_id: str, instance_id: str) -> ConsumerMember:
        """UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if another member has the instance id."""
        member = group.static_member(instance_id)
        if member is None:
            raise ApiError(ErrorCode.unknown_member_id, f"Instance id {instance_id} is unknown.")
        if member.member_id != member_id:
            message = (
                f"Static member {member_id} with instance id {instance_id} was fenced by member "
                f"{member.member_id}."
            )
            raise ApiError(ErrorCode.fenced_instance_id, message)
        return member

    def joining_static(
        self, group: ConsumerGroup, member_id: str, instance_id: str, *, is_classic: bool
    ) -> Subscriber:
        """A static member that is new, or takes the place of the one with its instance id.

        UNRELEASED_INSTANCE_ID if that one has not left, and neither of them uses the classic protocol.
        """
        replaced = group.static_member(instance_id)
        if replaced is None:
            return Subscriber(self.dynamic_member(group, member_id, may_be_new=True), [])
        is_released = replaced.member_epoch == STATIC_LEAVE_EPOCH
        if not is_classic and replaced.classic is None and not is_released:
            message = (
                f"Static member {member_id} with instance id {instance_id} cannot join the group because "
                f"the instance id is owned by {replaced.member_id} member."
            )
            raise ApiError(ErrorCode.unreleased_instance_id, message)
        member = replaced._replace(member_id=member_id, member_epoch=0, previous_member_epoch=0)
        target = group.target.get(replaced.member_id, EMPTY_ASSIGNMENT)
        shares = group.target_shares.get(replaced.member_id, NO_SHARES)
        records: list[AnyGroupRecord] = [
            *member_tombstones(group.group_id, replaced.member_id),
            member_metadata(group.group_id, member),
            target_assignment_member(group.group_id, member_id, target, shares),
            current_member_assignment(group.group_id, member),
        ]
        return Subscriber(member, records, replaced)

    # Changes of a member

    def change(
        self,
        group: ConsumerGroup,
        before: ConsumerMember,
        after: ConsumerMember,
        moment: Moment,
        replaced: ConsumerMember | None,
    ) -> MemberChange:
        interval_ms = self._configs.assignment_interval_ms(group.group_id)
        around = Circumstances(
            self._catalog, self._handover, self._settings, interval_ms, self.topics_came_at, moment
        )
        return MemberChange(group, before, after, around, replaced=replaced)

    def write(self, records: list[AnyGroupRecord]) -> Steps[None]:
        if records:
            yield Write(records)

    def note_changed(
        self, opened: ConsumerGroup, change: MemberChange, subscriber: Subscriber, moment: Moment
    ) -> None:
        """Update the soft state after the records of the change are in the log."""
        group_id = opened.group_id
        # A new group is in the registry only now; until then no change of topics was counted for it.
        group = self._registry.existing(group_id)
        if group is opened:
            group.soft.topic_changes_seen = change.topic_changes_seen
        if subscriber.replaced is not None and subscriber.replaced.member_id != change.member.member_id:
            self._timers.forget(group_id, subscriber.replaced.member_id)
        if change.member != subscriber.member:
            self._timers.expect_revocation(group_id, change.member, moment.now_ms)
        if change.regexes_due:
            group.soft.is_resolving = True
            self.on_regexes_due(group_id, change.regexes_due)

    # Members that leave

    def leave(self, request: HeartbeatRequest, moment: Moment) -> Steps[HeartbeatResult]:
        """A heartbeat with the epoch -1, or -2 of a static member that will come back."""
        group = self._registry.existing(request.group_id)
        if request.instance_id is None:
            member = self.dynamic_member(group, request.member_id, may_be_new=False)
        else:
            member = self.static_member(group, request.member_id, request.instance_id)
        result = HeartbeatResult(request.member_id, request.member_epoch, 0, None)
        if request.instance_id is not None and request.member_epoch == STATIC_LEAVE_EPOCH:
            yield Write([self._gone_for_now(group, member)])
            return result._replace(member_id=member.member_id)
        yield from self.remove(group, [member], moment)
        return result

    def _gone_for_now(self, group: ConsumerGroup, member: ConsumerMember) -> AnyGroupRecord:
        # The member that comes back has another id. With epoch 0 the partitions count as its own from the
        # beginning.
        left = member._replace(
            member_epoch=STATIC_LEAVE_EPOCH,
            assigned={topic: dict.fromkeys(ones, 0) for topic, ones in member.assigned.items()},
            revoking=NO_PARTITIONS,
        )
        return current_member_assignment(group.group_id, left)

    def remove(
        self, group: ConsumerGroup, members: Collection[ConsumerMember], moment: Moment
    ) -> Steps[None]:
        """Remove members; if only members of the classic protocol remain, the group becomes a classic one."""
        if not members:
            return
        member_ids = list(group.members)
        if migration.may_become_classic(group, members, self._settings):
            classic, records = migration.downgraded(group, members, self._catalog, moment)
            yield Write(records)
            self._forget_timers(group.group_id, member_ids)
            yield from self._classic_groups.adopt(classic, moment, rebalance=True)
            return
        yield Write(self._removal(group, members))
        self._forget_timers(group.group_id, [member.member_id for member in members])

    def _forget_timers(self, group_id: str, member_ids: Collection[str]) -> None:
        for member_id in member_ids:
            self._timers.forget(group_id, member_id)

    def _removal(self, group: ConsumerGroup, members: Collection[ConsumerMember]) -> list[AnyGroupRecord]:
        records: list[AnyGroupRecord] = []
        left = group.subscriptions
        for member in members:
            records.extend(member_tombstones(group.group_id, member.member_id))
            left = left.changed(member, NO_MEMBER)
        gone = [regex for regex in group.subscriptions.regexes if regex not in left.regexes]
        records.extend(regular_expression_tombstone(group.group_id, regex) for regex in gone)
        topics_hash = metadata_hash(left.without_unused().topics(), self._catalog)
        group_epoch = group.group_epoch + 1
        records.append(group_metadata(group.group_id, group_epoch, topics_hash))
        if len(group.members) == len(members):
            # No member is left to assign to.
            records.append(target_assignment_metadata(group.group_id, group_epoch, NEVER_ASSIGNED))
        return records

    # Timers

    def timed_out(self, group: ConsumerGroup, timer: Timer, moment: Moment) -> Steps[None]:
        """A member is late and is removed, unless it has given up its partitions meanwhile."""
        member = group.members.get(timer.member_id)
        if member is None:
            return
        if timer.kind is TimerKind.REVOCATION and member.state is not MemberState.UNREVOKED_PARTITIONS:
            return
        yield from self.remove(group, [member], moment)
