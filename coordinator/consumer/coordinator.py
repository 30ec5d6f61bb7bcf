"""Consumer groups: heartbeats, administration, timers (KIP-848). See `GroupCoordinator`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from uuid import UUID

from barnabas.coordinator.consumer.classic_members import ClassicMembers
from barnabas.coordinator.consumer.consumer_group import ConsumerGroup
from barnabas.coordinator.consumer.description import PROTOCOL_TYPE, DescribedMember, describe_group
from barnabas.coordinator.consumer.handover import Handover
from barnabas.coordinator.consumer.heartbeat import HeartbeatRequest, HeartbeatResult, validate_heartbeat
from barnabas.coordinator.consumer.interfaces import ClassicGroups, PendingCommits, TopicDirectory
from barnabas.coordinator.consumer.member import LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from barnabas.coordinator.consumer.membership import Membership
from barnabas.coordinator.consumer.offsets import ConsumerOffsetRules
from barnabas.coordinator.consumer.regex_resolution import resolution_records, resolve
from barnabas.coordinator.consumer.registry import ConsumerRegistry
from barnabas.coordinator.consumer.settings import ConsumerSettings
from barnabas.coordinator.consumer.timers import ConsumerTimers
from barnabas.coordinator.group.description import DescribedGroup, ListedGroup
from barnabas.coordinator.group.group_coordinator import GroupCoordinator
from barnabas.coordinator.group.group_operations import GroupOperations
from barnabas.coordinator.group.membership_configs import MembershipConfigs
from barnabas.coordinator.group.records import AnyGroupRecord
from barnabas.coordinator.group.steps import Steps
from barnabas.coordinator.group.timers import Timer
from barnabas.coordinator.replay.steps import Write
from barnabas.protocol.consumer_group_records import ConsumerGroupRecord
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.runtime.completion import Completion
from barnabas.runtime.moment import Moment, MonotonicOf


class ConsumerCoordinator(GroupCoordinator[ConsumerGroup]):
    """All consumer groups of this broker."""

    GROUP_TYPE = "consumer"

    def __init__(
        self,
        *,
        operations: GroupOperations,
        catalog: TopicDirectory,
        classic_groups: ClassicGroups,
        pending_commits: PendingCommits,
        configs: MembershipConfigs,
        settings: ConsumerSettings,
        now_ms: Callable[[], int],
        wall_ms: Callable[[], int],
        new_uuid: Callable[[], UUID],
        other_group_type: Callable[[str], str | None],
        on_deadline: Callable[[], None],
    ) -> None:
        """`other_group_type` returns the type of a group of that id that is not a consumer group, or None;
        `on_deadline` is called when `next_deadline_ms` may have moved.
        """
        self._member_timers = ConsumerTimers(configs)
        self._registry = ConsumerRegistry(
            self.GROUP_TYPE, max_groups=settings.max_groups, other_group_type=other_group_type
        )
        super().__init__(operations, self._registry, self._member_timers.deadlines, on_deadline)
        self._catalog = catalog
        self._settings = settings
        self._now_ms = now_ms
        self._wall_ms = wall_ms
        handover = Handover(catalog, pending_commits)
        self._membership = Membership(
            self._registry,
            self._member_timers,
            catalog,
            classic_groups,
            handover,
            configs,
            settings,
            new_uuid,
        )
        self._membership.on_regexes_due = self._resolve_regexes
        self.classic_members = ClassicMembers(
            self._registry,
            self._membership,
            self._member_timers,
            classic_groups,
            catalog,
            handover,
            settings,
        )
        """The part that the classic coordinator calls."""
        self.offset_rules = ConsumerOffsetRules(self._registry)
        """The part that the offsets' coordinator calls."""

    def replay(self, record: ConsumerGroupRecord, monotonic_of: MonotonicOf) -> None:
        """Apply a record that was loaded or appended."""
        self._registry.replay(record, monotonic_of)

    # Members

    def heartbeat(self, request: HeartbeatRequest, *, now_ms: int) -> Completion[HeartbeatResult]:
        """ConsumerGroupHeartbeat.

        INVALID_REQUEST, UNSUPPORTED_ASSIGNOR, INVALID_REGULAR_EXPRESSION, GROUP_ID_NOT_FOUND,
        GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID,
        UNRELEASED_INSTANCE_ID, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE.
        """
        try:
            validate_heartbeat(request, self._settings.assignors)
        except ApiError as error:
            return Completion.failed(error)
        leaves = request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH)
        steps = self._membership.leave if leaves else self._membership.heartbeat
        return self._run(request.group_id, lambda: steps(request, self._moment(now_ms)))

    # Topics

    def on_metadata_changed(self, topic_names: Iterable[str], *, has_new: bool) -> None:
        """Topics of these names were created, deleted or grew, and the catalog has the change: each group
        checks at its next heartbeat. With `has_new`, regular expressions may match new topics.
        """
        if has_new:
            self._membership.topics_came_at = self._catalog.version()
        group_ids = set[str]().union(*map(self._registry.groups_of_topic, topic_names))
        for group_id in group_ids:
            self._registry.existing(group_id).soft.topic_changes += 1

    def _resolve_regexes(self, group_id: str, regexes: Collection[str]) -> None:
        """Resolve them in an operation of its own, behind the one that found it due."""
        reply = self._run(group_id, partial(self._resolving, group_id, regexes))
        reply.when_done(partial(self._resolved, group_id))

    def _resolving(self, group_id: str, regexes: Collection[str]) -> Steps[None]:
        group = self._registry.get(group_id)
        if group is None:
            return
        group.soft.is_resolving = False
        resolved = resolve(regexes, self._catalog, self._moment(self._now_ms()))
        # The topics are read now, so the epoch accounts for the changes up to now.
        changes = group.soft.topic_changes
        records = resolution_records(group, resolved, self._catalog)
        if records:
            yield Write(records)
            group.soft.topic_changes_seen = changes

    def _resolved(self, group_id: str, _: Completion[None]) -> None:
        group = self._registry.get(group_id)
        if group is not None:
            # Also if the operation was refused: the next heartbeat finds it due again.
            group.soft.is_resolving = False

    # Administration

    def describe(self, group_id: str) -> DescribedGroup[DescribedMember]:
        """ConsumerGroupDescribe of one group: INVALID_GROUP_ID (empty id), COORDINATOR_LOAD_IN_PROGRESS,
        GROUP_ID_NOT_FOUND."""
        if not group_id:
            raise ApiError(ErrorCode.invalid_group_id)
        self._operations.check_loaded(group_id)
        group = self._registry.existing(group_id)
        return describe_group(group, self._catalog, self._settings.assignors[0])

    def tombstones(self, group_id: str) -> list[AnyGroupRecord]:
        """The records that delete a group without members: NON_EMPTY_GROUP."""
        return self.classic_members.tombstones(group_id)

    # See `GroupCoordinator`

    def _begin_sessions(self, group: ConsumerGroup, now_ms: int) -> None:
        for member in group.members.values():
            self._member_timers.expect_heartbeat(group.group_id, member, now_ms)
            self._member_timers.expect_revocation(group.group_id, member, now_ms)

    def _end_waits(self, group: ConsumerGroup) -> None:
        for member_id in group.members:
            self._member_timers.forget(group.group_id, member_id)

    def _listed(self, group: ConsumerGroup) -> ListedGroup:
        return ListedGroup(
            group.group_id, PROTOCOL_TYPE, group.state.value, self.GROUP_TYPE, len(group.members)
        )

    def _timed_out(self, group: ConsumerGroup, timer: Timer, now_ms: int) -> Steps[None]:
        return self._membership.timed_out(group, timer, self._moment(now_ms))

    def _moment(self, now_ms: int) -> Moment:
        return Moment(now_ms, self._wall_ms())
