"""The share group coordinator's way in: heartbeats, administration, timers (KIP-932, "Group coordinator").

Every method runs on the loop's thread and answers at once or, where a record must be appended first, through
a `Completion`. Times are passed in: `now_ms` is monotonic and measures sessions, `wall_ms` is the time
of day and is what the log stores. There are no timers here: ask `next_deadline_ms()`, call `expire(now_ms)`.

A partition's groups must be loaded before anything is asked of them (with no records, if its log is empty).
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar
from uuid import UUID

from barnabas.coordinator.group.configs import GroupConfigs
from barnabas.coordinator.group.description import ListedGroup
from barnabas.coordinator.group.record_names import is_too_long
from barnabas.coordinator.group.records import AnyGroupRecord
from barnabas.coordinator.group.runtimes import GroupRuntimes
from barnabas.coordinator.replay.interfaces import TopicCatalog
from barnabas.coordinator.replay.retries import retry_if_refused
from barnabas.coordinator.replay.steps import Operation, Write
from barnabas.coordinator.share_group import deletion, offsets
from barnabas.coordinator.share_group.description import (
    GROUP_TYPE,
    DescribedGroup,
    describe_group,
    list_groups,
)
from barnabas.coordinator.share_group.empty_groups import EmptyGroups
from barnabas.coordinator.share_group.heartbeat import (
    HeartbeatRequest,
    HeartbeatResult,
    steady_member,
    validate_heartbeat,
)
from barnabas.coordinator.share_group.initialisation import with_zero_starts
from barnabas.coordinator.share_group.interfaces import ShareStateInitialiser
from barnabas.coordinator.share_group.membership import Membership
from barnabas.coordinator.share_group.record_factory import state_partition_metadata
from barnabas.coordinator.share_group.registry import ShareGroupRegistry
from barnabas.coordinator.share_group.settings import ShareGroupSettings
from barnabas.coordinator.share_group.share_group import LEAVE_EPOCH, ShareGroup, TopicPartitionSet
from barnabas.coordinator.share_group.steps import Steps
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.protocol.share_group_records import ShareGroupRecord
from barnabas.runtime.completion import Completion

EXPIRY_RETRY_MS = 500
"""Pause before a member whose removal could not be written is tried again, as in Kafka."""

_Result = TypeVar("_Result")


class ShareGroupCoordinator:
    """All share groups of this broker."""

    def __init__(
        self,
        *,
        runtimes: GroupRuntimes,
        catalog: TopicCatalog,
        share_state: ShareStateInitialiser,
        configs: GroupConfigs,
        settings: ShareGroupSettings,
        other_group_type: Callable[[str], str | None],
        on_deadline: Callable[[], None],
    ) -> None:
        """`other_group_type` answers the type of a group of that id that is no share group, or None;
        `on_deadline` is called when `next_deadline_ms` may have moved.
        """
        self._catalog = catalog
        self._share_state = share_state
        self._configs = configs
        self._registry = ShareGroupRegistry(max_groups=settings.max_groups, other_group_type=other_group_type)
        self._empty_groups = EmptyGroups(settings.empty_retention_ms)
        self._membership = Membership(self._registry, catalog, share_state, configs, settings)
        self._runtimes = runtimes
        self._on_deadline = on_deadline

    # Loading

    def replay(self, record: ShareGroupRecord) -> None:
        """Take over a record of a share group, from a log that is being loaded or has just been written."""
        self._registry.replay(record)

    def begin(self, partition: int, now_ms: int) -> None:
        """A partition's records were all replayed: its members' sessions begin now."""
        for group in self._registry:
            if group.id_hash % self._runtimes.partition_count == partition:
                for member_id in group.members:
                    self._membership.restart_session(group.group_id, member_id, now_ms)
        self._empty_groups.begin(now_ms)

    def forget(self, partition: int) -> None:
        """Forget a partition's groups and their sessions; its records may be replayed anew."""
        for group in self._registry.drop_partition(partition, self._runtimes.partition_count):
            for member_id in group.members:
                self._membership.sessions.cancel((group.group_id, member_id))

    # Members

    def heartbeat(
        self, request: HeartbeatRequest, *, now_ms: int, wall_ms: int
    ) -> Completion[HeartbeatResult]:
        """ShareGroupHeartbeat, after authorization.

        INVALID_REQUEST, GROUP_ID_NOT_FOUND, GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH,
        COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE.
        """
        group = self._registry.get(request.group_id)
        if group is not None:
            member = steady_member(group, request)
            if member is not None and self._runtimes.of_hash(group.id_hash).idle:
                self._membership.restart_session(group.group_id, member.member_id, now_ms)
                self._on_deadline()
                interval_ms = self._configs.heartbeat_interval_ms(group.group_id)
                return Completion.of(
                    HeartbeatResult(member.member_id, member.member_epoch, interval_ms, None)
                )
        try:
            validate_heartbeat(request)
        except ApiError as error:
            return Completion.failed(error)
        if request.member_epoch == LEAVE_EPOCH:
            operation = partial(self._membership.leave, request.group_id, request.member_id)
        else:
            operation = partial(self._membership.heartbeat, request, now_ms, wall_ms)
        return self._run(request.group_id, operation)

    def next_deadline_ms(self) -> int | None:
        """When (monotonic) to call `expire`; None if there is nothing to wait for."""
        deadlines_ms = (self._membership.sessions.next_deadline_ms(), self._empty_groups.next_deadline_ms())
        return min((one for one in deadlines_ms if one is not None), default=None)

    def expire(self, now_ms: int) -> None:
        """Remove the members whose sessions have ended, and the groups that have been empty for too long."""
        for group_id, member_id in self._membership.sessions.expire(now_ms):
            self._end_session(group_id, member_id, now_ms)
        for group_id in self._empty_groups.due(self._registry, now_ms):
            self._delete_empty(group_id)

    # Topics

    def on_metadata_changed(self, topic_names: Iterable[str]) -> None:
        """Topics of these names were created, deleted or grew, and the catalog says so: groups look at their
        next heartbeat."""
        for name in topic_names:
            for group_id in self._registry.groups_of_topic(name):
                group = self._registry.get(group_id)
                if group is not None:
                    group.soft.metadata_refresh_due = True
                    group.soft.settled = False

    def on_topics_deleted(self, topic_ids: Collection[UUID]) -> None:
        """Topics are gone, from the catalog too: groups forget that they were initialised.

        Nobody waits for it. What cannot be written now is made good by the group's next heartbeat that looks.
        """
        gone = frozenset(topic_ids)
        for group in list(self._registry):
            known = group.state_partitions
            if not gone.isdisjoint({*known.initialised, *known.initialising, *known.deleting}):
                self._submit_forget(group.group_id, gone)

    # Administration

    def describe(self, group_id: str) -> DescribedGroup:
        """ShareGroupDescribe of one group: INVALID_GROUP_ID (empty id), GROUP_ID_NOT_FOUND (no share
        group)."""
        self._runtimes.check_loaded(_named(group_id))
        return describe_group(self._registry.existing(group_id), self._catalog)

    def list_groups(self) -> list[ListedGroup]:
        """All share groups, for ListGroups."""
        return list_groups(self._registry)

    def type_of(self, group_id: str) -> str | None:
        """What share groups' type is called, if there is one of that id."""
        return None if self._registry.get(group_id) is None else GROUP_TYPE

    def delete_group(self, group_id: str) -> Completion[None]:
        """DeleteGroups of one group: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, or what kept state from being
        deleted."""
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

        def operation() -> Steps[list[offsets.AlteredTopic]]:
            group = self._registry.existing_or_new(_named(group_id), wall_ms)
            created = self._registry.get(group_id) is None
            group.soft.empty_since_ms = None
            return (
                yield from offsets.alter_offsets(
                    group, topics, self._catalog, self._share_state, created=created
                )
            )

        return self._run(group_id, operation)

    def delete_offsets(
        self, group_id: str, topic_names: Sequence[str]
    ) -> Completion[list[offsets.DeletedTopic]]:
        """DeleteShareGroupOffsets: INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP."""

        def operation() -> Steps[list[offsets.DeletedTopic]]:
            group = self._registry.existing(_named(group_id))
            group.soft.empty_since_ms = None
            return (yield from offsets.delete_offsets(group, topic_names, self._catalog, self._share_state))

        return self._run(group_id, operation)

    # Starts of partitions

    def record_zero_starts(self, group_id: str, partitions: Collection[TopicIdPartition]) -> Completion[None]:
        """Record that the group begins at offset 0 in these partitions, which hold no record yet.
        GROUP_ID_NOT_FOUND, COORDINATOR_NOT_AVAILABLE.
        """
        return self._run(group_id, partial(self._recording_zero_starts, group_id, partitions))

    def starts_at_zero(self, key: SharePartitionKey) -> bool:
        """Whether the group's records say that it begins at offset 0 in this partition."""
        group = self._loaded(key.group_id)
        zero_starts = {} if group is None else group.state_partitions.zero_starts
        return key.partition in zero_starts.get(key.topic_id, ())

    def _recording_zero_starts(self, group_id: str, partitions: Collection[TopicIdPartition]) -> Steps[None]:
        group = self._registry.existing(group_id)
        after = with_zero_starts(group.state_partitions, partitions)
        if after != group.state_partitions:
            yield Write([state_partition_metadata(group_id, after)])

    # State that others read

    @property
    def rebalance_count(self) -> int:
        """How many heartbeats have raised their group's epoch since the start."""
        return self._membership.rebalance_count

    def incarnation(self, group_id: str) -> int | None:
        """What tells this group from earlier ones of the same id; None if there is no such group."""
        group = self._loaded(group_id)
        return None if group is None else group.incarnation

    def group_epoch(self, group_id: str) -> int:
        """The group's epoch; 0 if there is no such group."""
        group = self._loaded(group_id)
        return 0 if group is None else group.group_epoch

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
        """The group, unless there is more to be replayed of it."""
        group = self._registry.get(group_id)
        is_loaded = group is not None and self._runtimes.of_hash(group.id_hash).loaded
        return group if is_loaded else None

    # Operations

    def _end_session(self, group_id: str, member_id: str, now_ms: int) -> None:
        operation = partial(self._membership.end_session, group_id, member_id)
        reply = self._run(group_id, operation)
        session, retry_at_ms = (group_id, member_id), now_ms + EXPIRY_RETRY_MS
        retry_if_refused(reply, self._membership.sessions, session, retry_at_ms, self._on_deadline)

    def _delete_empty(self, group_id: str) -> None:
        """A group that has got a member meanwhile stays, as does one whose state cannot be deleted now."""
        self.delete_group(group_id).when_done(lambda _: self._empty_groups.ended(group_id))

    def _submit_forget(self, group_id: str, topic_ids: Collection[UUID]) -> None:
        def operation() -> Steps[None]:
            group = self._registry.get(group_id)
            if group is not None:
                yield from deletion.forget_topics(group, topic_ids)

        self._run(group_id, operation)

    def _run(self, group_id: str, operation: Operation[AnyGroupRecord, _Result]) -> Completion[_Result]:
        reply = self._runtimes.of_group(group_id).submit(operation)
        reply.when_done(lambda _: self._on_deadline())
        return reply


def _named(group_id: str) -> str:
    if not group_id or is_too_long(group_id):
        raise ApiError(ErrorCode.invalid_group_id, "The group id is empty, or too long to be stored.")
    return group_id
