"""Share-partition leaders over a real log in memory, with the groups and limits that a test sets."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

from barnabas.protocol.control_record import ShareCheckpoint, ShareDelta
from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.runtime.completion import Completion
from barnabas.runtime.deadlines import Deadlines
from barnabas.runtime.purgatory import Purgatory
from barnabas.share.leader.handout import Handout
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.share.leader.share_partitions import SharePartitions
from barnabas.share.log_store.log_state_store import LogStateStore
from barnabas.share.log_store.partition_state_store import PartitionStateStore
from barnabas.share.log_store.pinned_checkpoints import PinnedCheckpoints
from barnabas.share.partition.acquisition import Demand
from barnabas.share.partition.limits import AcquireMode, ShareLimits
from barnabas.share.partition.waits import no_jitter
from barnabas.storage.format.share_index import group_hash
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig
from tests.broker.network.edge_fakes import ManualClock, ManualTimers
from tests.share.recorded_letters import RecordedLetters
from tests.storage.log_building import TOPIC_ID, append, open_log, small_storage
from tests.storage.memory_filesystem import MemoryFileSystem

# pyright: reportPrivateUsage=false

PARTITION = TopicIdPartition(TOPIC_ID, 0)
ACCEPT, RELEASE = 1, 2
LOCK_MS = 1000


class Groups:
    """Each group's incarnation, as from the coordinator; each is at epoch 7."""

    def __init__(self) -> None:
        self.incarnations = {"group": 1, "other": 1}
        self.zero_starts: set[SharePartitionKey] = set()

    def group_incarnation(self, group_id: str) -> int | None:
        return self.incarnations.get(group_id)

    def group_epoch(self, group_id: str) -> int:
        return 7

    def starts_at_zero(self, key: SharePartitionKey) -> bool:
        return key in self.zero_starts


class Leading:
    """One log and everything that its leaders need."""

    def __init__(
        self, filesystem: MemoryFileSystem, log: PartitionLog, *, deltas_per_checkpoint: int
    ) -> None:
        self.filesystem = filesystem
        self.log = log
        self.clock = ManualClock()
        self.timers = ManualTimers(self.clock)
        self.groups = Groups()
        self.purgatory = Purgatory(Deadlines(self.clock, self.timers.call_later))
        self.limits = ShareLimits(delivery_count_max=5, lock_duration_ms=LOCK_MS, record_locks_max=200)
        self.let_open = asyncio.Event()
        """Clear it to make a reset wait for its log."""
        self.let_open.set()
        self.reopened: list[TopicIdPartition] = []
        """Partitions whose logs were requested to be reopened."""
        self.store = LogStateStore(self._open_log, self.clock.wall_ms, deltas_per_checkpoint)
        self.letters = RecordedLetters()
        self.with_pending: list[SharePartitionLeader] = []
        """New leaders with acknowledgements that wait for transactions."""
        self.share_partitions = SharePartitions(
            clock=self.clock,
            deadlines=Deadlines(self.clock, self.timers.call_later),
            purgatory=self.purgatory,
            groups=self.groups,
            limits=lambda _: self.limits,
            random=no_jitter,
            has_topic=lambda topic_id: topic_id == TOPIC_ID,
            store=self.store,
            reopen=self.reopened.append,
            dead_letters=self.letters,
        )
        self.share_partitions.transactions = self
        self.pinned = PinnedCheckpoints(self.share_partitions, self.store, self.groups)
        log.when_moved(lambda: self.share_partitions.log_moved(PARTITION.place, log))

    def acknowledgements_found(self, leader: SharePartitionLeader) -> None:
        """See `Transactions`."""
        self.with_pending.append(leader)

    def has_acknowledgements(self, key: SharePartitionKey) -> bool:
        """See `Transactions`."""
        return any(leader.key == key for leader in self.with_pending)

    @property
    def partition_store(self) -> PartitionStateStore:
        return self.store.decisions_of(PARTITION, self.log)

    async def _open_log(self, partition: TopicIdPartition) -> PartitionLog | None:
        await self.let_open.wait()
        return self.log if partition == PARTITION else None

    def key(self, group_id: str = "group", topic_id: UUID = TOPIC_ID) -> SharePartitionKey:
        return SharePartitionKey(group_id, topic_id, 0)

    def lead(self, group_id: str = "group") -> SharePartitionLeader:
        """The group's leader, which begins at offset 0 if no state is recorded."""
        leader = self.share_partitions.lead(self.key(group_id), self.log)
        assert leader is not None
        if not leader.core.is_initialised:
            leader.start.begin_at(0)
        return leader

    def produce(self, *batch_sizes: int) -> None:
        for size in batch_sizes:
            assert append(self.log, size).error is None

    def fetch(
        self, leader: SharePartitionLeader, records_max: int = 500, *, member_id: str = "member"
    ) -> Handout:
        limits, mode = self.share_partitions.limits(leader.group_id), AcquireMode.BATCH_OPTIMIZED
        demand = Demand(member_id, records_max, 1 << 20, 500, mode, limits, self.clock.monotonic_ms())
        upper_offset = leader.upper_offset(read_committed=False)
        return leader.acquire(leader.core.plan(demand), demand, upper_offset)

    def records(self, group_id: str = "group") -> list[tuple[int, ShareCheckpoint | ShareDelta]]:
        """(offset, record) of all that the group has recorded, oldest first."""
        entries = list(self.log.share_records.newest(group_hash(group_id)))
        return [self.log.share_records.read(entry) for entry in reversed(entries)]


async def leading(
    filesystem: MemoryFileSystem | None = None,
    *,
    deltas_per_checkpoint: int = 500,
    config: LogConfig | None = None,
    **storage: object,
) -> Leading:
    """A log, opened in the given filesystem or a new one; further options are those of the storage."""
    files = filesystem or MemoryFileSystem()
    log = await open_log(files, config=config, storage=small_storage(**storage))
    return Leading(files, log, deltas_per_checkpoint=deltas_per_checkpoint)


def acknowledge(
    leader: SharePartitionLeader, first_offset: int, last_offset: int, *types: int, member_id: str = "member"
) -> Completion[None]:
    return acknowledge_batches(leader, member_id, [AckBatch(first_offset, last_offset, types or (ACCEPT,))])


def acknowledge_batches(
    leader: SharePartitionLeader, member_id: str, batches: Sequence[AckBatch]
) -> Completion[None]:
    now_ms = leader._services.clock.monotonic_ms()
    return leader.acknowledge(member_id, batches, leader.limits(), now_ms)
