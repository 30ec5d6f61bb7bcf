"""All groups of this broker, of every type, and the offsets that consumers commit.

A group id belongs to one type at a time. This module loads, lists and deletes groups of every type, and
passes the time on. Requests for one type go to `share`, `consumer` or `classic`, requests for committed
offsets to `offsets`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple, cast
from uuid import UUID

from barnabas.coordinator.classic.coordinator import ClassicCoordinator
from barnabas.coordinator.classic.group import ClassicGroup
from barnabas.coordinator.classic.settings import ClassicSettings
from barnabas.coordinator.consumer.coordinator import ConsumerCoordinator
from barnabas.coordinator.consumer.interfaces import TopicDirectory
from barnabas.coordinator.consumer.settings import ConsumerSettings
from barnabas.coordinator.group.description import ListedGroup
from barnabas.coordinator.group.group_operations import group_operations
from barnabas.coordinator.group.membership_configs import MembershipConfigs
from barnabas.coordinator.group.records import (
    AnyGroupRecord,
    decode_record,
    is_classic,
    is_consumer,
    is_offset,
    is_offset_range,
)
from barnabas.coordinator.offsets.coordinator import OffsetCoordinator
from barnabas.coordinator.offsets.interfaces import OffsetConfigs
from barnabas.coordinator.offsets.settings import OffsetSettings
from barnabas.coordinator.replay.interfaces import (
    NO_PRODUCER_ID,
    CoordinatorLog,
    Stored,
    StoredMarker,
    TransactionMarker,
)
from barnabas.coordinator.replay.steps import Steps, Write
from barnabas.coordinator.share_group.coordinator import ShareGroupCoordinator
from barnabas.coordinator.share_group.interfaces import (
    PartitionLoads,
    ShareMembershipConfigs,
    ShareStateInitialiser,
)
from barnabas.coordinator.share_group.settings import ShareGroupSettings
from barnabas.protocol.classic_group_records import NO_TOPIC_ID, OffsetRecord
from barnabas.protocol.share_group_records import ShareGroupRecord
from barnabas.runtime.completion import Completion
from barnabas.runtime.moment import Moment, MonotonicOf, written_at


class GroupsSettings(NamedTuple):
    """The limits of the broker, and the configurations of single groups."""

    share: ShareGroupSettings
    share_configs: ShareMembershipConfigs
    consumer: ConsumerSettings
    consumer_configs: MembershipConfigs
    classic: ClassicSettings
    offsets: OffsetSettings
    offset_configs: OffsetConfigs


class Groups:
    """The coordinators of all types of groups and of offsets, over one topic."""

    def __init__(
        self,
        *,
        log: CoordinatorLog,
        partition_count: int,
        catalog: TopicDirectory,
        share_state: ShareStateInitialiser,
        partition_loads: PartitionLoads,
        settings: GroupsSettings,
        now_ms: Callable[[], int],
        wall_ms: Callable[[], int],
        new_uuid: Callable[[], UUID],
        on_deadline: Callable[[], None],
    ) -> None:
        """`partition_count` is that of `log`; `now_ms` is monotonic and `wall_ms` the time of day;
        `on_deadline` is called when `next_deadline_ms` may have moved.
        """
        self._now_ms = now_ms
        self._wall_ms = wall_ms
        queued_max = settings.share.max_queued_operations
        self.operations = group_operations(
            log, self, partition_count=partition_count, max_queued_operations=queued_max
        )
        self.share: ShareGroupCoordinator = ShareGroupCoordinator(
            operations=self.operations,
            catalog=catalog,
            share_state=share_state,
            loads=partition_loads,
            configs=settings.share_configs,
            settings=settings.share,
            wall_ms=wall_ms,
            other_group_type=lambda group_id: self._type_beside(group_id, self.share),
            on_deadline=on_deadline,
        )
        self.consumer = self._consumer_coordinator(catalog, settings, new_uuid, on_deadline)
        self.classic: ClassicCoordinator = ClassicCoordinator(
            operations=self.operations,
            settings=settings.classic,
            wall_ms=wall_ms,
            new_uuid=new_uuid,
            consumer_groups=self.consumer.classic_members,
            other_group_type=lambda group_id: self._type_beside(group_id, self.classic),
            on_deadline=on_deadline,
        )
        self.offsets = self._offset_coordinator(settings, on_deadline)
        self._coordinators = (self.share, self.consumer, self.classic)
        self._with_offsets = (*self._coordinators, self.offsets)

    def _offset_coordinator(
        self, settings: GroupsSettings, on_deadline: Callable[[], None]
    ) -> OffsetCoordinator:
        return OffsetCoordinator(
            operations=self.operations,
            classic_groups=self.classic.offset_rules,
            consumer_groups=self.consumer.offset_rules,
            configs=settings.offset_configs,
            settings=settings.offsets,
            now_ms=self._now_ms,
            wall_ms=self._wall_ms,
            on_deadline=on_deadline,
        )

    def _consumer_coordinator(
        self,
        catalog: TopicDirectory,
        settings: GroupsSettings,
        new_uuid: Callable[[], UUID],
        on_deadline: Callable[[], None],
    ) -> ConsumerCoordinator:
        return ConsumerCoordinator(
            operations=self.operations,
            catalog=catalog,
            classic_groups=self,
            pending_commits=self,
            configs=settings.consumer_configs,
            settings=settings.consumer,
            now_ms=self._now_ms,
            wall_ms=self._wall_ms,
            new_uuid=new_uuid,
            other_group_type=lambda group_id: self._type_beside(group_id, self.consumer),
            on_deadline=on_deadline,
        )

    @property
    def partition_count(self) -> int:
        return self.operations.partition_count

    # Loading

    def load(self, partition: int, records: Iterable[Stored]) -> Iterator[None]:
        """Replay a partition's log, oldest first, one record per step. The last step admits operations, and
        begins all members' sessions. Take all steps, unless `unload` comes in between.

        Records of unknown types are skipped. RecordFormatError if one is malformed.
        """
        yield from self.operations.load(partition, records, self._load)
        now_ms = self._now_ms()
        for coordinator in self._coordinators:
            coordinator.begin(partition, now_ms)
        self.offsets.begin(now_ms)

    def unload(self, partition: int) -> None:
        """Forget a partition's groups and their sessions, because its log may hold less than was replayed.

        Until it is loaded again its operations, including those under way, are refused with
        COORDINATOR_LOAD_IN_PROGRESS. An append under way must have ended before the log is read.
        """
        self.operations.unload(partition)
        # After that, because a timer whose action was refused has been set again.
        for coordinator in self._with_offsets:
            coordinator.forget(partition)

    def resize(self, partition_count: int) -> None:
        """The topic has this number of partitions. All earlier ones must have been unloaded."""
        self.operations.resize(partition_count)

    def partition_of(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` that holds the group's records."""
        return self.operations.partition_of(group_id)

    # Transactions

    def end_transaction(self, partition: int, marker: TransactionMarker) -> Completion[None]:
        """Write the end of a producer's transaction: the offsets that it committed in this partition count
        now, or never.

        The log's refusal; COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE.
        """
        return self.operations.submit(partition, partial(self.offsets.ending, partition, marker))

    # Timers

    def next_deadline_ms(self) -> int | None:
        """When (monotonic) to call `expire`; None without a deadline."""
        deadlines_ms = (coordinator.next_deadline_ms() for coordinator in self._with_offsets)
        return min((deadline_ms for deadline_ms in deadlines_ms if deadline_ms is not None), default=None)

    def expire(self, now_ms: int) -> None:
        """Do everything that is due in the groups, and the next part of the round through their offsets."""
        for coordinator in self._with_offsets:
            coordinator.expire(now_ms)

    def prolong_session(self, group_id: str, member_id: str, delay_ms: int) -> None:
        """Expect the next heartbeat of a group's member later; nothing happens if there is no such member."""
        for coordinator in self._coordinators:
            coordinator.prolong_session(group_id, member_id, delay_ms)

    # Administration

    def list_groups(
        self, states_filter: Collection[str] = (), types_filter: Collection[str] = ()
    ) -> list[ListedGroup]:
        """ListGroups: groups in one of the states and of one of the types; an empty filter passes all.

        Groups of partitions that are not loaded are left out.
        """
        states = {state.strip().lower() for state in states_filter}
        types = {group_type.strip().lower() for group_type in types_filter}
        is_all = self.operations.all_loaded
        return [
            group
            for coordinator in self._coordinators
            for group in coordinator.list_groups()
            if (not states or group.state.lower() in states)
            and (not types or group.group_type.lower() in types)
            and (is_all or self.operations.of_key(group.group_id).loaded)
        ]

    def delete_group(self, group_id: str) -> Completion[None]:
        """DeleteGroups of one group, with its offsets or share state: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP."""
        return self.operations.of_key(group_id).submit(partial(self._deleting, group_id))

    def _deleting(self, group_id: str) -> Steps[AnyGroupRecord, None]:
        # Read here: earlier operations may create or delete a group of any type.
        if self.share.type_of(group_id) is not None:
            yield from self.share.deleting(group_id)
            return
        groups = self.classic if self.consumer.type_of(group_id) is None else self.consumer
        yield Write([*self.offsets.tombstones(group_id), *groups.tombstones(group_id)])

    def on_metadata_changed(self, topic_names: Collection[str], *, has_new: bool) -> None:
        """Topics of these names were created, deleted or grew, and the catalog has the change; `has_new` if
        some are new.
        """
        self.share.on_metadata_changed(topic_names)
        self.consumer.on_metadata_changed(topic_names, has_new=has_new)

    def on_settings_changed(self, group_ids: Collection[str]) -> None:
        """The own settings of these groups have changed; the groups need not exist."""
        self.share.on_settings_changed(group_ids, self._now_ms())

    def on_topics_deleted(self, topics: Mapping[str, UUID]) -> None:
        """Topics (id by name) are gone, also from the catalog: groups forget them."""
        self.share.on_topics_deleted(topics.values())
        # Offsets from before there were topic ids belong to the topic that had the name.
        self.offsets.forget_topics({name: {topic_id, NO_TOPIC_ID} for name, topic_id in topics.items()})

    def pending_committers(
        self, group_id: str, topic_name: str, topic_id: UUID, partition: int
    ) -> Collection[str]:
        """See `PendingCommits`."""
        return self.offsets.pending_committers(group_id, topic_name, topic_id, partition)

    # Replay

    def replay(self, record: AnyGroupRecord, offset: int) -> None:
        """See `GroupReplay`."""
        self._replay(record, offset, written_at(self._now_ms()))

    def _replay(self, record: AnyGroupRecord, offset: int, monotonic_of: MonotonicOf) -> None:
        if is_offset(record):
            self.offsets.replay(record, offset, monotonic_of)
            self._replay_commit(record, monotonic_of)
        elif is_offset_range(record):
            self.offsets.replay_range(record, monotonic_of)
        elif is_classic(record):
            self.classic.replay(record, monotonic_of)
        elif is_consumer(record):
            key, value = record
            if value is not None:
                # Offsets that stand before the group in the log have created a simple group.
                self.classic.drop_simple(key.group_id)
            self.consumer.replay(record, monotonic_of)
            self.offsets.note_membership(key.group_id)
        else:
            self.share.replay(cast("ShareGroupRecord", record), monotonic_of)

    def replay_pending(self, partition: int, record: AnyGroupRecord, offset: int, producer_id: int) -> None:
        """See `TransactionReplay`."""
        self._replay_pending(partition, record, offset, producer_id, written_at(self._now_ms()))

    def _replay_pending(
        self,
        partition: int,
        record: AnyGroupRecord,
        offset: int,
        producer_id: int,
        monotonic_of: MonotonicOf,
    ) -> None:
        if is_offset_range(record):
            self.offsets.replay_pending_range(partition, record, offset, producer_id, monotonic_of)
            return
        assert is_offset(record), "only offsets are committed in transactions"
        self.offsets.replay_pending(partition, record, offset, producer_id, monotonic_of)
        self._replay_commit(record, monotonic_of)

    def replay_marker(self, partition: int, producer_id: int, *, commit: bool) -> None:
        """See `TransactionReplay`."""
        self.offsets.replay_marker(partition, producer_id, commit=commit)

    def _load(self, partition: int, stored: Stored) -> None:
        if isinstance(stored, StoredMarker):
            self.replay_marker(partition, stored.producer_id, commit=stored.commit)
            return
        record = None if stored.key is None else decode_record(stored.key, stored.value)
        if record is None:
            return
        monotonic_of = Moment(self._now_ms(), self._wall_ms()).monotonic_of
        is_committed_by_producer = stored.producer_id != NO_PRODUCER_ID
        if is_committed_by_producer and (is_offset(record) or is_offset_range(record)):
            self._replay_pending(partition, record, stored.offset, stored.producer_id, monotonic_of)
        else:
            self._replay(record, stored.offset, monotonic_of)

    def _replay_commit(self, record: OffsetRecord, monotonic_of: MonotonicOf) -> None:
        key, value = record
        if value is not None:
            committed_ms = value.commit_timestamp_ms
            self.classic.replay_commit(key.group, Moment(monotonic_of(committed_ms), committed_ms))

    # The classic groups, for the consumer groups' coordinator, which is made first

    def find(self, group_id: str) -> ClassicGroup | None:
        """See `ClassicGroups`."""
        return self.classic.protocol_change.find(group_id)

    def release(self, group: ClassicGroup) -> None:
        """See `ClassicGroups`."""
        self.classic.protocol_change.release(group)

    def adopt(self, decided: ClassicGroup, moment: Moment, *, rebalance: bool) -> Steps[AnyGroupRecord, None]:
        """See `ClassicGroups`."""
        yield from self.classic.protocol_change.adopt(decided, moment, rebalance=rebalance)

    def _type_beside(self, group_id: str, coordinator: object) -> str | None:
        """The type of the group of that id if another coordinator than this one has it."""
        types = (other.type_of(group_id) for other in self._coordinators if other is not coordinator)
        return next((group_type for group_type in types if group_type is not None), None)
