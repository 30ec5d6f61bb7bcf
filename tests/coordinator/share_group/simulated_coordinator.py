"""A group coordinator with simulated surroundings: a log that can wait or fail, topics that the test sets,
recorded share state.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID, uuid4

from barnabas.coordinator.classic.settings import ClassicSettings
from barnabas.coordinator.consumer.settings import ConsumerSettings
from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.coordinator.groups import Groups, GroupsSettings
from barnabas.coordinator.offsets.requests import CommitRequest, OffsetToCommit
from barnabas.coordinator.offsets.settings import OffsetSettings
from barnabas.coordinator.replay.interfaces import TopicShape
from barnabas.coordinator.share_group.coordinator import ShareGroupCoordinator
from barnabas.coordinator.share_group.heartbeat import HeartbeatRequest, HeartbeatResult
from barnabas.coordinator.share_group.interfaces import PartitionLoad
from barnabas.coordinator.share_group.registry import ShareGroupRegistry
from barnabas.coordinator.share_group.settings import ShareGroupSettings
from barnabas.coordinator.share_group.share_group import ShareGroup
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import SharePartitionKey
from barnabas.protocol.share_group_records import ShareGroupRecord, decode_share_group_record
from barnabas.runtime.completion import Completion
from barnabas.runtime.moment import Moment
from tests.coordinator.adjustable_configs import AdjustableConfigs
from tests.coordinator.alarm import Alarm
from tests.coordinator.group.partition_count import GROUP_PARTITION_COUNT
from tests.coordinator.simulated_log import SimulatedLog, take_all

GROUP = "orders"
TOPIC = "parcels"
FIRST_WALL_MS = 1_700_000_000_000


class GroupLog(SimulatedLog):
    """The log of a group coordinator."""

    def records(self, first_batch: int = 0) -> list[ShareGroupRecord]:
        decoded = [
            decode_share_group_record(*record)
            for batch in self.batches[first_batch:]
            for record in batch.records
        ]
        return [record for record in decoded if record is not None]


class SimulatedCatalog:
    """Topics, made and changed by hand."""

    def __init__(self) -> None:
        self._by_name: dict[str, TopicShape] = {}
        self._made = 0
        self._version = 0

    def create(self, name: str, partition_count: int = 1) -> UUID:
        self._made += 1
        self._version += 1
        self._by_name[name] = TopicShape(name, UUID(int=self._made << 64 | self._made), partition_count)
        return self._by_name[name].topic_id

    def version(self) -> int:
        return self._version

    def grow(self, name: str, partition_count: int) -> None:
        self._version += 1
        self._by_name[name] = self._by_name[name]._replace(partition_count=partition_count)

    def delete(self, name: str) -> UUID:
        self._version += 1
        return self._by_name.pop(name).topic_id

    def topic_names(self) -> list[str]:
        return list(self._by_name)

    def topic_by_name(self, name: str) -> TopicShape | None:
        return self._by_name.get(name)

    def topic_by_id(self, topic_id: UUID) -> TopicShape | None:
        return next((shape for shape in self._by_name.values() if shape.topic_id == topic_id), None)


class Initialised(NamedTuple):
    """A call to make share state."""

    group_id: str
    group_incarnation: int
    topic_id: UUID
    partition: int
    start_offset: int
    state_epoch: int


@dataclass
class SimulatedShareState:
    """Records the created and deleted states; fails for the named partitions."""

    made: list[Initialised] = field(default_factory=list[Initialised])
    deleted: list[tuple[str, UUID, int]] = field(default_factory=list[tuple[str, UUID, int]])
    failing_partitions: set[int] = field(default_factory=set[int])
    partitions_in_transactions: set[int] = field(default_factory=set[int])

    def initialise(
        self,
        group_id: str,
        group_incarnation: int,
        topic_id: UUID,
        partition: int,
        start_offset: int,
        state_epoch: int,
    ) -> Completion[None]:
        self.made.append(
            Initialised(group_id, group_incarnation, topic_id, partition, start_offset, state_epoch)
        )
        return self._ended(partition)

    def delete(
        self, group_id: str, group_incarnation: int, topic_id: UUID, partition: int
    ) -> Completion[None]:
        self.deleted.append((group_id, topic_id, partition))
        return self._ended(partition)

    def is_in_transaction(self, group_id: str, topic_id: UUID, partition: int) -> bool:
        return partition in self.partitions_in_transactions

    def _ended(self, partition: int) -> Completion[None]:
        if partition in self.failing_partitions:
            return Completion.failed(OSError("read-only"))
        return Completion.of(None)


class SimulatedLoads:
    """Backlogs, set by hand; a partition that the test does not name is not known."""

    def __init__(self) -> None:
        self._finished: dict[SharePartitionKey, int] = {}
        self._ends: dict[SharePartitionKey, int] = {}
        self.question_count = 0

    def produce(self, topic_id: UUID, partition: int, count: int, *, group_id: str = GROUP) -> None:
        """Records are written; 0 makes the partition known."""
        key = SharePartitionKey(group_id, topic_id, partition)
        self._ends[key] = self._ends.get(key, 0) + count

    def finish(self, topic_id: UUID, partition: int, count: int, *, group_id: str = GROUP) -> None:
        """The first unfinished records are accepted."""
        key = SharePartitionKey(group_id, topic_id, partition)
        self._finished[key] = self._finished.get(key, 0) + count

    def forget(self, topic_id: UUID, partition: int, *, group_id: str = GROUP) -> None:
        """The leader is gone."""
        del self._ends[SharePartitionKey(group_id, topic_id, partition)]

    def load_of(self, key: SharePartitionKey, before_offset: int | None) -> PartitionLoad | None:
        self.question_count += 1
        if key not in self._ends:
            return None
        end_offset = self._ends[key]
        upper_offset = end_offset if before_offset is None else before_offset
        return PartitionLoad(max(upper_offset - self._finished.get(key, 0), 0), end_offset)


class Simulation:
    """A coordinator with its surroundings and a clock; monotonic time begins at 0."""

    def __init__(self, settings: ShareGroupSettings | None = None, *, loaded: bool = True) -> None:
        self.settings = settings or ShareGroupSettings()
        self.log = GroupLog()
        self.catalog = SimulatedCatalog()
        self.share_state = SimulatedShareState()
        self.loads = SimulatedLoads()
        self.configs = AdjustableConfigs()
        self.now_ms = 0
        self.wall_shift_ms = 0
        """How far the wall clock was set forward since the start."""
        self._alarm = Alarm()
        self.groups = self._new_groups()
        if loaded:
            self.load()

    @property
    def coordinator(self) -> ShareGroupCoordinator:
        """The share groups' part."""
        return self.groups.share

    def _new_groups(self) -> Groups:
        return Groups(
            partition_count=GROUP_PARTITION_COUNT,
            log=self.log,
            catalog=self.catalog,
            share_state=self.share_state,
            partition_loads=self.loads,
            settings=GroupsSettings(
                share=self.settings,
                share_configs=self.configs,
                consumer=ConsumerSettings(),
                consumer_configs=AdjustableConfigs(),
                classic=ClassicSettings(),
                offsets=OffsetSettings(),
                offset_configs=AdjustableConfigs(),
            ),
            now_ms=lambda: self.now_ms,
            wall_ms=lambda: self.wall_ms,
            new_uuid=uuid4,
            on_deadline=lambda: self._alarm.deadline_moved(self.groups),
        )

    def occupy(self, group_id: str) -> None:
        """Let a classic group have this id."""
        offset = OffsetToCommit(TOPIC, UUID(int=0), 0, 5, -1, "")
        commit = CommitRequest(group_id, MemberIdentity("", None), -1, [offset], tells_not_found=True)
        assert self.groups.offsets.commit(commit, now_ms=self.now_ms).result() == [ErrorCode.none]

    @property
    def moment(self) -> Moment:
        return Moment(self.now_ms, self.wall_ms)

    @property
    def wall_ms(self) -> int:
        return FIRST_WALL_MS + self.now_ms + self.wall_shift_ms

    def load(self) -> None:
        self._load(self.groups)

    def _load(self, groups: Groups) -> None:
        for partition in range(GROUP_PARTITION_COUNT):
            take_all(groups.load(partition, self.log.stored(partition)))
        self._alarm.deadline_moved(groups)

    def restarted(self) -> ShareGroupCoordinator:
        """Another coordinator, loaded from the log."""
        groups = self._new_groups()
        self._load(groups)
        return groups.share

    def restart(self) -> None:
        """Continue with a coordinator loaded from the log."""
        self.groups = self._new_groups()
        self.load()

    def advance(self, elapsed_ms: int) -> None:
        """Let time pass; sessions that end are ended when they do."""
        until_ms = self.now_ms + elapsed_ms
        while (due_ms := self._alarm.armed_ms) is not None and due_ms <= until_ms:
            self.now_ms = max(self.now_ms, due_ms)
            self._alarm.ring(self.groups, self.now_ms)
        self.now_ms = until_ms

    def submit(
        self,
        member_id: str,
        member_epoch: int,
        topics: Sequence[str] | None = None,
        *,
        group_id: str = GROUP,
        rack_id: str | None = None,
        client_id: str = "client",
        client_host: str = "/127.0.0.1",
    ) -> Completion[HeartbeatResult]:
        request = HeartbeatRequest(group_id, member_id, member_epoch, rack_id, topics, client_id, client_host)
        return self.coordinator.heartbeat(request, self.moment)

    def heartbeat(
        self, member_id: str, member_epoch: int, topics: Sequence[str] | None = None, *, group_id: str = GROUP
    ) -> HeartbeatResult:
        return self.submit(member_id, member_epoch, topics, group_id=group_id).result()

    def join(self, member_id: str, *topics: str, group_id: str = GROUP) -> HeartbeatResult:
        return self.heartbeat(member_id, 0, topics or (TOPIC,), group_id=group_id)

    def leave(self, member_id: str, *, group_id: str = GROUP) -> HeartbeatResult:
        return self.heartbeat(member_id, -1, group_id=group_id)

    def has_member(self, member_id: str) -> bool:
        """Whether the coordinator's group, which exists, has that member."""
        described = self.coordinator.describe(GROUP).members
        return member_id in [member.member_id for member in described]

    def replayed(self) -> ShareGroupRegistry:
        """The state after a replay of the log's records."""
        registry = ShareGroupRegistry("share", max_groups=1_000, other_group_type=self.groups.classic.type_of)
        for record in self.log.records():
            registry.replay(record, self.moment.monotonic_of)
        return registry

    def group(self, group_id: str = GROUP) -> ShareGroup:
        """The group, as replayed from the log's bytes."""
        return self.replayed().existing(group_id)


def durable_state(group: ShareGroup) -> tuple[object, ...]:
    """All of a group that its records determine."""
    return (
        group.group_id,
        group.incarnation,
        group.group_epoch,
        group.metadata_hash,
        group.assignment_epoch,
        group.assigned_at_ms,
        group.members,
        group.target,
        group.subscriber_counts,
        group.state_partitions,
    )


def failed_deletion() -> tuple[Simulation, UUID]:
    """A group without members whose state in partition 1 of 2 could not be deleted."""
    simulation = Simulation()
    topic_id = simulation.catalog.create(TOPIC, 2)
    simulation.join("a")
    simulation.leave("a")
    simulation.share_state.failing_partitions = {1}
    (outcome,) = simulation.coordinator.delete_offsets(GROUP, [TOPIC]).result()
    assert outcome.error_code is ErrorCode.kafka_storage_error
    simulation.share_state.made.clear()
    simulation.share_state.deleted.clear()
    simulation.advance(2_000)  # The next member is assigned at once.
    return simulation, topic_id
