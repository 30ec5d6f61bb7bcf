"""All groups of this broker, of every type, and what consumers of both protocols commit.

A group id belongs to one type at a time. What concerns all of them is here: loading, timers, listing,
deleting; what members and administrators ask of one type goes to `share`, `consumer` or `classic`, what they
ask of committed offsets to `offsets`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast
from uuid import UUID

from barnabas.coordinator.classic.coordinator import ClassicCoordinator
from barnabas.coordinator.classic.group import ClassicGroup
from barnabas.coordinator.classic.requests import Moment
from barnabas.coordinator.classic.settings import ClassicSettings
from barnabas.coordinator.consumer.coordinator import ConsumerCoordinator
from barnabas.coordinator.consumer.interfaces import TopicDirectory
from barnabas.coordinator.consumer.settings import ConsumerSettings
from barnabas.coordinator.group.configs import GroupConfigs
from barnabas.coordinator.group.description import ListedGroup
from barnabas.coordinator.group.records import (
    AnyGroupRecord,
    decode_record,
    is_classic,
    is_consumer,
    is_offset,
)
from barnabas.coordinator.group.runtimes import GroupRuntimes
from barnabas.coordinator.offsets.coordinator import OffsetCoordinator
from barnabas.coordinator.offsets.settings import OffsetSettings
from barnabas.coordinator.replay.interfaces import (
    NO_PRODUCER_ID,
    CoordinatorLog,
    Stored,
    StoredMarker,
    TransactionMarker,
)
from barnabas.coordinator.replay.partition_runtime import PartitionRuntime
from barnabas.coordinator.replay.steps import Steps, Write, WriteMarker
from barnabas.coordinator.share_group.coordinator import ShareGroupCoordinator
from barnabas.coordinator.share_group.interfaces import ShareStateInitialiser
from barnabas.coordinator.share_group.settings import ShareGroupSettings
from barnabas.protocol.classic_group_records import NO_TOPIC_ID, OffsetRecord
from barnabas.protocol.share_group_records import ShareGroupRecord
from barnabas.runtime.completion import Completion


class GroupsSettings(NamedTuple):
    """What steers the groups: limits of the broker, and what each group may be configured with."""

    share: ShareGroupSettings
    share_configs: GroupConfigs
    consumer: ConsumerSettings
    consumer_configs: GroupConfigs
    classic: ClassicSettings
    offsets: OffsetSettings


class Groups:
    """The groups, what they have committed, and the one way in which their records are written and read."""

    def __init__(
        self,
        *,
        log: CoordinatorLog,
        partition_count: int,
        catalog: TopicDirectory,
        share_state: ShareStateInitialiser,
        settings: GroupsSettings,
        wall_ms: Callable[[], int],
        new_uuid: Callable[[], UUID],
        on_deadline: Callable[[], None],
    ) -> None:
        """`partition_count` is that of `log`; `wall_ms` is the time of day; `on_deadline` is called when
        `next_deadline_ms` may have moved.
        """
        self._runtimes = GroupRuntimes(
            log,
            self,
            partition_count=partition_count,
            max_queued_operations=settings.share.max_queued_operations,
        )
        self.share: ShareGroupCoordinator = ShareGroupCoordinator(
            runtimes=self._runtimes,
            catalog=catalog,
            share_state=share_state,
            configs=settings.share_configs,
            settings=settings.share,
            other_group_type=lambda group_id: self._type_beside(group_id, self.share),
            on_deadline=on_deadline,
        )
        self.consumer: ConsumerCoordinator = ConsumerCoordinator(
            runtimes=self._runtimes,
            catalog=catalog,
            classic_groups=self,
            configs=settings.consumer_configs,
            settings=settings.consumer,
            wall_ms=wall_ms,
            new_uuid=new_uuid,
            other_group_type=lambda group_id: self._type_beside(group_id, self.consumer),
            on_deadline=on_deadline,
        )
        self.classic = self._make_classic(settings.classic, wall_ms, new_uuid, on_deadline)
        self.offsets: OffsetCoordinator = OffsetCoordinator(
            runtimes=self._runtimes,
            classic_groups=self.classic.offset_rules,
            consumer_groups=self.consumer.offset_rules,
            settings=settings.offsets,
            wall_ms=wall_ms,
            on_deadline=on_deadline,
        )

    def _make_classic(
        self,
        settings: ClassicSettings,
        wall_ms: Callable[[], int],
        new_uuid: Callable[[], UUID],
        on_deadline: Callable[[], None],
    ) -> ClassicCoordinator:
        return ClassicCoordinator(
            runtimes=self._runtimes,
            settings=settings,
            wall_ms=wall_ms,
            new_uuid=new_uuid,
            consumer_groups=self.consumer.classic_requests,
            other_group_type=lambda group_id: self._type_beside(group_id, self.classic),
            on_deadline=on_deadline,
        )

    @property
    def runtimes(self) -> Sequence[PartitionRuntime[AnyGroupRecord]]:
        """Those of all partitions, in their order."""
        return self._runtimes.runtimes

    # Loading

    def load(self, partition: int, records: Iterable[Stored], *, now_ms: Callable[[], int]) -> Iterator[None]:
        """Replay a partition's log, oldest first, a record with each step, and open it for operations with
        the last one: all members' sessions begin then. To be gone through to its end, unless `unload` comes
        in between.

        Records of types that are not known here are passed over. RecordFormatError if one is malformed.
        """
        runtime = self._runtimes.of_partition(partition)
        assert not runtime.loaded
        for stored in records:
            self._load(partition, stored)
            yield
        begun_ms = now_ms()
        self.share.begin(partition, begun_ms)
        self.consumer.begin(partition, begun_ms)
        self.classic.begin(partition, begun_ms)
        self.offsets.begin(begun_ms)
        runtime.loaded = True

    def unload(self, partition: int) -> None:
        """Forget a partition's groups and their sessions, for its log may hold less than was replayed.

        Until it is loaded again its operations, those under way included, are refused with
        COORDINATOR_LOAD_IN_PROGRESS. An append that was under way must have ended before the log is read.
        """
        self._runtimes.of_partition(partition).unload()
        # Only now: a removal that was refused has begun its member's session anew.
        self.share.forget(partition)
        self.consumer.forget(partition)
        self.classic.forget(partition)
        self.offsets.forget(partition)

    def resize(self, partition_count: int) -> None:
        """The topic has so many partitions. All that there were have been unloaded."""
        self._runtimes.resize(partition_count)

    def partition_of(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` in which the group's records are."""
        return self._runtimes.partition_of(group_id)

    # Transactions

    def end_transaction(self, partition: int, marker: TransactionMarker) -> Completion[None]:
        """Write the end of a producer's transaction: what it committed in this partition's groups counts now,
        or never.

        As the log refuses it; COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE.
        """

        def operation() -> Steps[AnyGroupRecord, None]:
            yield WriteMarker(marker)

        return self._runtimes.of_partition(partition).submit(operation)

    # Timers

    def next_deadline_ms(self) -> int | None:
        """When (monotonic) to call `expire`; None if there is nothing to wait for."""
        deadlines_ms = (one.next_deadline_ms() for one in (*self._coordinators, self.offsets))
        return min((one for one in deadlines_ms if one is not None), default=None)

    def expire(self, now_ms: int) -> None:
        """Do what is due in all groups, and with as many of their offsets as are looked at in one go."""
        for coordinator in (*self._coordinators, self.offsets):
            coordinator.expire(now_ms)

    # Administration

    def list_groups(
        self, states_filter: Collection[str] = (), types_filter: Collection[str] = ()
    ) -> list[ListedGroup]:
        """ListGroups: those in one of the states and of one of the types; an empty filter lets all pass.

        Of partitions that aren't loaded there are none.
        """
        states = {state.strip().lower() for state in states_filter}
        types = {group_type.strip().lower() for group_type in types_filter}
        is_all = all(runtime.loaded for runtime in self.runtimes)
        return [
            group
            for coordinator in self._coordinators
            for group in coordinator.list_groups()
            if (not states or group.state.lower() in states)
            and (not types or group.group_type.lower() in types)
            and (is_all or self._runtimes.of_group(group.group_id).loaded)
        ]

    def delete_group(self, group_id: str) -> Completion[None]:
        """DeleteGroups of one group, with all that belongs to it: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP."""

        def operation() -> Steps[AnyGroupRecord, None]:
            # Only now: a group of any type may be being made, or deleted.
            if self.share.type_of(group_id) is not None:
                yield from self.share.deleting(group_id)
                return
            groups = self.classic if self.consumer.type_of(group_id) is None else self.consumer
            yield Write([*self.offsets.tombstones(group_id), *groups.tombstones(group_id)])

        return self._runtimes.of_group(group_id).submit(operation)

    def on_metadata_changed(self, topic_names: Collection[str], *, has_new: bool) -> None:
        """Topics of these names were created, deleted or grew, and the catalog says so; `has_new` if some
        are new."""
        self.share.on_metadata_changed(topic_names)
        self.consumer.on_metadata_changed(topic_names, has_new=has_new)

    def on_topics_deleted(self, topics: Mapping[str, UUID]) -> None:
        """Topics (id by name) are gone, from the catalog too: groups forget them."""
        self.share.on_topics_deleted(topics.values())
        # What was committed before offsets had topic ids belongs to whichever topic had the name.
        self.offsets.forget_topics({name: {topic_id, NO_TOPIC_ID} for name, topic_id in topics.items()})

    # Replay, for the runtime.

    def replay(self, record: AnyGroupRecord, offset: int) -> None:
        """See `GroupReplay`."""
        if is_classic(record):
            self.classic.note_written(record)
        else:
            self._replay_alike(record, offset)

    def replay_pending(self, partition: int, record: AnyGroupRecord, offset: int, producer_id: int) -> None:
        """See `TransactionReplay`."""
        assert is_offset(record), "only offsets are committed in transactions"
        self.offsets.replay_pending(partition, record, offset, producer_id)
        self._ensure_group(record)

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
        if is_classic(record):
            self.classic.load(record)
        elif is_offset(record) and stored.producer_id != NO_PRODUCER_ID:
            self.replay_pending(partition, record, stored.offset, stored.producer_id)
        else:
            self._replay_alike(record, stored.offset)

    def _replay_alike(self, record: AnyGroupRecord, offset: int) -> None:
        """A record that is taken over alike, whether it has just been written or is loaded."""
        if is_offset(record):
            self.offsets.replay(record, offset)
            self._ensure_group(record)
        elif is_consumer(record):
            key, value = record
            if value is not None:
                # Offsets that stand before the group in the log have made a simple one.
                self.classic.drop_simple(key.group_id)
            self.consumer.replay(record)
        else:
            self.share.replay(cast("ShareGroupRecord", record))

    def _ensure_group(self, record: OffsetRecord) -> None:
        key, value = record
        if value is not None:
            self.classic.ensure_group(key.group, value.commit_timestamp_ms)

    # The classic groups, for consumer groups, which are made first.

    def find(self, group_id: str) -> ClassicGroup | None:
        """See `ClassicGroups`."""
        return self.classic.protocol_change.find(group_id)

    def release(self, group: ClassicGroup) -> None:
        """See `ClassicGroups`."""
        self.classic.protocol_change.release(group)

    def adopt(self, group: ClassicGroup, moment: Moment, *, rebalance: bool) -> Steps[AnyGroupRecord, None]:
        """See `ClassicGroups`."""
        yield from self.classic.protocol_change.adopt(group, moment, rebalance=rebalance)

    # What the types have in common

    @property
    def _coordinators(self) -> tuple[ShareGroupCoordinator, ConsumerCoordinator, ClassicCoordinator]:
        return self.share, self.consumer, self.classic

    def _type_beside(self, group_id: str, coordinator: object) -> str | None:
        """The type of the group of that id, if it is of another coordinator than this one."""
        types = (one.type_of(group_id) for one in self._coordinators if one is not coordinator)
        return next((one for one in types if one is not None), None)
