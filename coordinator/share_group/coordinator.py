"""Share groups: heartbeats, administration, timers (KIP-932, "Group coordinator"). See `GroupCoordinator`.

`now_ms` is monotonic and measures sessions; `wall_ms` is the time of day, and is stored in records.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from uuid import UUID

from barnabas.coordinator.group.description import DescribedGroup, ListedGroup
from barnabas.coordinator.group.group_coordinator import GroupCoordinator
from barnabas.coordinator.group.group_operations import GroupOperations
from barnabas.coordinator.group.record_names import checked_group_id
from barnabas.coordinator.group.steps import Steps
from barnabas.coordinator.group.timers import Timer, TimerKind
from barnabas.coordinator.replay.interfaces import TopicCatalog
from barnabas.coordinator.replay.steps import Write
from barnabas.coordinator.share_group import deletion, offsets
from barnabas.coordinator.share_group.description import PROTOCOL_TYPE, DescribedMember, describe_group
from barnabas.coordinator.share_group.empty_groups import EmptyGroups
from barnabas.coordinator.share_group.heartbeat import (
    HeartbeatRequest,
    HeartbeatResult,
    steady_member,
    validate_heartbeat,
)
from barnabas.coordinator.share_group.initialisation import with_zero_starts
from barnabas.coordinator.share_group.interfaces import (
    PartitionLoads,
    ShareMembershipConfigs,
    ShareStateInitialiser,
)
from barnabas.coordinator.share_group.membership import Membership
from barnabas.coordinator.share_group.record_factory import state_partition_metadata
from barnabas.coordinator.share_group.registry import ShareGroupRegistry
from barnabas.coordinator.share_group.settings import ShareGroupSettings
from barnabas.coordinator.share_group.share_group import (
    LEAVE_EPOCH,
    ShareGroup,
    ShareGroupMember,
    TopicPartitionSet,
)
from barnabas.protocol.errors import ApiError
from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.protocol.share_group_records import ShareGroupRecord
from barnabas.protocol.tuples import maker
from barnabas.runtime.completion import Completion
from barnabas.runtime.moment import Moment, MonotonicOf

_new_result = maker(HeartbeatResult)


class ShareGroupCoordinator(GroupCoordinator[ShareGroup]):
    """All share groups of this broker."""

    GROUP_TYPE = "share"

    def __init__(
        self,
        *,
        operations: GroupOperations,
        catalog: TopicCatalog,
        share_state: ShareStateInitialiser,
        loads: PartitionLoads,
        configs: ShareMembershipConfigs,
        settings: ShareGroupSettings,
        wall_ms: Callable[[], int],
        other_group_type: Callable[[str], str | None],
        on_deadline: Callable[[], None],
    ) -> None:
        """`wall_ms` is the time of day; `other_group_type` returns the type of a group of that id that is not
        a share group, or None; `on_deadline` is called when `next_deadline_ms` may have moved.
        """
        self._registry = ShareGroupRegistry(
            self.GROUP_TYPE, max_groups=settings.max_groups, other_group_type=other_group_type
        )
        self._membership = Membership(self._registry, catalog, share_state, loads, configs, settings)
        self._load_checks = self._membership.load_checks
        super().__init__(operations, self._registry, self._membership.timers, on_deadline)
        self._catalog = catalog
        self._share_state = share_state
        self._configs = configs
        self._wall_ms = wall_ms
        self._empty_groups = EmptyGroups(settings.empty_retention_ms)

    def replay(self, record: ShareGroupRecord, monotonic_of: MonotonicOf) -> None:
        """Apply a record that was loaded or appended."""
        self._registry.replay(record, monotonic_of)

    def begin(self, partition: int, now_ms: int) -> None:
        super().begin(partition, now_ms)
        self._empty_groups.begin(now_ms)

    # Members

    def heartbeat(self, request: HeartbeatRequest, moment: Moment) -> Completion[HeartbeatResult]:
        """ShareGroupHeartbeat.

        INVALID_REQUEST, GROUP_ID_NOT_FOUND, GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH,
        COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE.
        """
        group = self._registry.get(request.group_id)
        if group is not None:
            member = steady_member(group, request)
            if member is not None and self._operations.of_hash(group.id_hash).idle:
                if self._membership.restart_session(group.group_id, member.member_id, moment.now_ms):
                    self._on_deadline()
                interval_ms = self._configs.heartbeat_interval_ms(group.group_id)
                return Completion.of(_new_result((member.member_id, member.member_epoch, interval_ms, None)))
        try:
            validate_heartbeat(request)
        except ApiError as error:
            return Completion.failed(error)
        if request.member_epoch == LEAVE_EPOCH:
            operation = partial(self._membership.leave, request.group_id, request.member_id)
        else:
            operation = partial(self._membership.heartbeat, request, moment)
        return self._run(request.group_id, operation)

    def next_deadline_ms(self) -> int | None:
        session_ms, look_ms = self._timers.next_deadline_ms(), self._empty_groups.next_deadline_ms()
        if session_ms is None or look_ms is None:
            return session_ms if look_ms is None else look_ms
        return min(session_ms, look_ms)

    def expire(self, now_ms: int) -> None:
        """Remove the members whose sessions have ended, and the groups that were empty for too long; look at
        loads.
        """
        super().expire(now_ms)
        for group_id in self._empty_groups.due(self._registry, now_ms):
            # A group that has a new member stays, and so does one whose state cannot be deleted now.
            self.delete_group(group_id).when_done(partial(self._deletion_ended, group_id))

    def _deletion_ended(self, group_id: str, _: Completion[None]) -> None:
        self._empty_groups.ended(group_id)

    # Topics

    def on_metadata_changed(self, topic_names: Iterable[str]) -> None:
        """Topics of these names were created, deleted or grew, and the catalog has the change: each group
        checks at its next heartbeat.
        """
        for name in topic_names:
            for group_id in self._registry.groups_of_topic(name):
                group = self._registry.get(group_id)
                if group is not None:
                    group.soft.metadata_refresh_due = True
                    group.soft.settled = False

    def on_topics_deleted(self, topic_ids: Collection[UUID]) -> None:
        """Topics are gone, also from the catalog: groups forget that they were initialised.

        The caller does not wait. If the record cannot be written, the group's next heartbeat that checks the
        topics writes it.
        """
        gone = frozenset(topic_ids)
        for group in list(self._registry):
            known = group.state_partitions
            if not gone.isdisjoint({*known.initialised, *known.initialising, *known.deleting}):
                self._run(group.group_id, partial(self._forgetting_topics, group.group_id, gone))

    def _forgetting_topics(self, group_id: str, topic_ids: Collection[UUID]) -> Steps[None]:
        group = self._registry.get(group_id)
        if group is not None:
            yield from deletion.forget_topics(group, topic_ids)

    # Settings

    def on_settings_changed(self, group_ids: Iterable[str], now_ms: int) -> None:
        """The groups' own settings have changed. All of them count from their next use; a change of the
        assignor is such a use.
        """
        for group_id in group_ids:
            group = self._registry.get(group_id)
            if group is not None:
                self._load_checks.settings_changed(group, now_ms)
        self._on_deadline()

    # Administration

    def describe(self, group_id: str) -> DescribedGroup[DescribedMember]:
        """ShareGroupDescribe of one group: INVALID_GROUP_ID, COORDINATOR_LOAD_IN_PROGRESS,
        GROUP_ID_NOT_FOUND.
        """
        self._operations.check_loaded(checked_group_id(group_id))
        group = self._registry.existing(group_id)
        return describe_group(group, self._catalog, self._configs.assignor(group_id))

    def check_exists(self, group_id: str) -> None:
        """INVALID_GROUP_ID, COORDINATOR_LOAD_IN_PROGRESS, or GROUP_ID_NOT_FOUND if it is no share group."""
        self._operations.check_loaded(checked_group_id(group_id))
        self._registry.existing(group_id)

    def delete_group(self, group_id: str) -> Completion[None]:
        """DeleteGroups of one group: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, or an error of the share state."""
        return self._run(group_id, partial(self.deleting, group_id))

    def deleting(self, group_id: str) -> Steps[None]:
        """The steps of `delete_group`."""
        yield from deletion.delete_group(self._registry.existing(group_id), self._catalog, self._share_state)

    def alter_offsets(
        self, group_id: str, topics: Sequence[offsets.TopicOffsets], *, wall_ms: int
    ) -> Completion[list[offsets.AlteredTopic]]:
        """AlterShareGroupOffsets; a group that does not exist is created, Empty at epoch 1.

        INVALID_GROUP_ID, NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND (another type), GROUP_MAX_SIZE_REACHED (too
        many).
        """

        return self._run(group_id, partial(self._altering_offsets, group_id, topics, wall_ms))

    def _altering_offsets(
        self, group_id: str, topics: Sequence[offsets.TopicOffsets], wall_ms: int
    ) -> Steps[list[offsets.AlteredTopic]]:
        group = self._registry.existing_or_new(checked_group_id(group_id), wall_ms)
        created = self._registry.get(group_id) is None
        group.soft.empty_since_ms = None
        return (
            yield from offsets.alter_offsets(group, topics, self._catalog, self._share_state, created=created)
        )

    def delete_offsets(
        self, group_id: str, topic_names: Sequence[str]
    ) -> Completion[list[offsets.DeletedTopic]]:
        """DeleteShareGroupOffsets: INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP."""

        return self._run(group_id, partial(self._deleting_offsets, group_id, topic_names))

    def _deleting_offsets(
        self, group_id: str, topic_names: Sequence[str]
    ) -> Steps[list[offsets.DeletedTopic]]:
        group = self._registry.existing(checked_group_id(group_id))
        group.soft.empty_since_ms = None
        return (yield from offsets.delete_offsets(group, topic_names, self._catalog, self._share_state))

    # Starts of partitions

    def record_zero_starts(self, group_id: str, partitions: Collection[TopicIdPartition]) -> Completion[None]:
        """Record that the group begins at offset 0 in these partitions, which hold no record yet.
        GROUP_ID_NOT_FOUND, COORDINATOR_NOT_AVAILABLE.
        """
        return self._run(group_id, partial(self._recording_zero_starts, group_id, partitions))

    def starts_at_zero(self, key: SharePartitionKey) -> bool:
        """Whether the group's records say that it begins at offset 0 in this partition."""
        group = self._loaded(key.group_id)
        if group is None:
            return False
        return key.partition in group.state_partitions.zero_starts.get(key.topic_id, ())

    def _recording_zero_starts(self, group_id: str, partitions: Collection[TopicIdPartition]) -> Steps[None]:
        group = self._registry.existing(group_id)
        after = with_zero_starts(group.state_partitions, partitions)
        if after != group.state_partitions:
            yield Write([state_partition_metadata(group_id, after)])

    # State that others read

    @property
    def rebalance_count(self) -> int:
        """How many heartbeats and looks at loads have raised their group's epoch since the start."""
        return self._membership.rebalance_count + self._load_checks.rebalance_count

    def incarnation(self, group_id: str) -> int | None:
        """The number that tells this group from earlier ones of the same id; None if it does not exist."""
        group = self._loaded(group_id)
        return None if group is None else group.incarnation

    def group_epoch(self, group_id: str) -> int:
        """The group's epoch; 0 if there is no such group."""
        group = self._loaded(group_id)
        return 0 if group is None else group.group_epoch

    def member(self, group_id: str, member_id: str) -> ShareGroupMember | None:
        """A present member of the group."""
        group = self._loaded(group_id)
        return None if group is None else group.members.get(member_id)

    def reads(self, key: SharePartitionKey) -> bool:
        """Whether the group exists and has share state in the partition. COORDINATOR_LOAD_IN_PROGRESS."""
        self._operations.check_loaded(key.group_id)
        group = self._registry.get(key.group_id)
        topic = None if group is None else group.state_partitions.initialised.get(key.topic_id)
        return topic is not None and key.partition in topic.partitions

    @property
    def all_loaded(self) -> bool:
        """Whether the records of all partitions were replayed, so that every group is known."""
        return self._operations.all_loaded

    def initialised_partitions(self, group_id: str) -> Mapping[UUID, TopicPartitionSet]:
        """The partitions with share state in the group, of topics that exist; empty for an unknown group."""
        group = self._loaded(group_id)
        if group is None:
            return {}
        return {
            topic: value
            for topic, value in group.state_partitions.initialised.items()
            if self._catalog.topic_by_id(topic) is not None
        }

    def _loaded(self, group_id: str) -> ShareGroup | None:
        """The group, if all of its records were replayed."""
        group = self._registry.get(group_id)
        is_loaded = group is not None and self._operations.of_hash(group.id_hash).loaded
        return group if is_loaded else None

    # See `GroupCoordinator`

    def _begin_sessions(self, group: ShareGroup, now_ms: int) -> None:
        for member_id in group.members:
            self._membership.restart_session(group.group_id, member_id, now_ms)
        if group.members:
            self._load_checks.watch(group, now_ms)

    def _end_waits(self, group: ShareGroup) -> None:
        for member_id in group.members:
            self._membership.end_session(group.group_id, member_id)
        self._load_checks.forget(group)

    def _listed(self, group: ShareGroup) -> ListedGroup:
        return ListedGroup(
            group.group_id, PROTOCOL_TYPE, group.state.value, self.GROUP_TYPE, len(group.members)
        )

    def _timed_out(self, group: ShareGroup, timer: Timer, now_ms: int) -> Steps[None]:
        if timer.kind is TimerKind.LOAD_CHECK:
            return self._load_checks.check(group, Moment(now_ms, self._wall_ms()))
        return self._membership.timed_out(group, timer.member_id)
