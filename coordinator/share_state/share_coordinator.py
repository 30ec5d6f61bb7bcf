"""The share coordinator's way in: each call becomes an operation on the partition that its key hashes to.

Operations on one partition run one after another; one that writes is answered when its record is appended and
replayed. Calls come on the loop's thread; times are wall time in ms.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar
from uuid import UUID

from barnabas.coordinator.replay.interfaces import CoordinatorLog, Stored, TopicCatalog
from barnabas.coordinator.replay.key_partition import partition_of_key
from barnabas.coordinator.replay.partition_runtime import PartitionRuntime
from barnabas.coordinator.share_state.loading import RecordsInForce
from barnabas.coordinator.share_state.shard import ShareStateShard, Steps
from barnabas.protocol.identity import SharePartitionKey
from barnabas.protocol.share_state_records import ShareStateRecord, encode_share_state_record
from barnabas.runtime.completion import Completion
from barnabas.storage.format.partition_metadata import decode_id, encode_id
from barnabas.storage.format.share_partition_state import SharePartitionState, StateWrite

_T = TypeVar("_T")


class ShareStateLog(CoordinatorLog, Protocol):
    """The partitions of `__share_group_state`."""

    def delete_before(self, partition: int, offset: int) -> None:
        """Let go of the records below `offset`, once all that is there now is safe. Nobody waits for it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareCoordinatorSettings:
    """Under Kafka's names where Kafka has them, all with the prefix `share.coordinator.`."""

    partition_count: int = 50
    """Of the topic; `state.topic.num.partitions` when it is created."""
    updates_per_snapshot: int = 500
    """`snapshot.update.records.per.snapshot`"""
    cold_interval_ms: int = 300_000
    """`cold.partition.snapshot.interval.ms`"""
    max_queued_operations: int = 10_000
    """Operations that may wait for one partition's append (Kafka has no such bound); beyond it:
    COORDINATOR_NOT_AVAILABLE."""


class _Partition(NamedTuple):
    shard: ShareStateShard
    runtime: PartitionRuntime[ShareStateRecord]


def coordinator_key(key: SharePartitionKey) -> str:
    """A share-partition as Kafka names it, in FindCoordinator too: `group:topicId:partition`."""
    return f"{key.group_id}:{encode_id(key.topic_id)}:{key.partition}"


def is_coordinator_key(text: str) -> bool:
    """Whether a share-partition may be named so; a group's id may have colons of its own."""
    group_id, _, partition = text.rpartition(":")
    group_id, _, topic_id = group_id.rpartition(":")
    try:
        decode_id(topic_id)
        int(partition)
    except ValueError:
        return False
    return bool(group_id.strip())


class ShareCoordinator:
    """All share-partitions' states of this broker."""

    def __init__(
        self, *, log: ShareStateLog, catalog: TopicCatalog, settings: ShareCoordinatorSettings
    ) -> None:
        self._log = log
        self._catalog = catalog
        self._settings = settings
        self._partitions = [self._empty(index) for index in range(settings.partition_count)]
        self._pruned_offsets: dict[int, int] = {}

    @property
    def runtimes(self) -> Sequence[PartitionRuntime[ShareStateRecord]]:
        """Those of all partitions, in their order."""
        return [one.runtime for one in self._partitions]

    @property
    def pruned_offsets(self) -> Mapping[int, int]:
        """By partition, the offset below which records were let go of; those without one are not in it."""
        return self._pruned_offsets

    @property
    def partition_count(self) -> int:
        return len(self._partitions)

    def partition_of(self, key: SharePartitionKey) -> int:
        """The partition of `__share_group_state` that keeps this share-partition."""
        return partition_of_key(coordinator_key(key), self.partition_count)

    def states(self) -> Mapping[SharePartitionKey, SharePartitionState]:
        """All that is loaded."""
        return {key: state for one in self._partitions for key, state in one.shard.states.items()}

    def holds(self, key: SharePartitionKey) -> bool:
        """Whether the share-partition has been initialised, as far as is loaded."""
        return key in self._partitions[self.partition_of(key)].shard

    def state_epoch(self, key: SharePartitionKey) -> int:
        """The newest that the share-partition's state was begun in, as far as is loaded; -1 if it wasn't."""
        return self._partitions[self.partition_of(key)].shard.state_epoch(key)

    # Loading

    def load(self, partition: int, records: Iterable[Stored]) -> Iterator[None]:
        """Replay a partition's log, oldest first, a record with each step, and open it for operations with
        the last one; nothing of it is known before.

        RecordFormatError if a record is malformed.
        """
        assert not self._partitions[partition].runtime.loaded
        loaded = self._empty(partition)
        in_force = RecordsInForce()
        for stored in records:
            in_force.add(stored)
            yield
        for record, offset in in_force.decoded():
            loaded.shard.replay(record, offset)
            yield
        loaded.runtime.loaded = True
        self._partitions[partition] = loaded

    def unload(self, partition: int) -> None:
        """Forget a partition's states, for its log may hold less than was replayed.

        Until it is loaded again its operations, those under way included, are refused with
        COORDINATOR_LOAD_IN_PROGRESS.
        """
        self._partitions[partition].runtime.unload()
        self._partitions[partition] = self._empty(partition)
        self._pruned_offsets.pop(partition, None)

    def resize(self, partition_count: int) -> None:
        """The topic has so many partitions. All that there were have been unloaded."""
        self._partitions = [self._empty(index) for index in range(partition_count)]

    # Operations; each may be refused with COORDINATOR_LOAD_IN_PROGRESS or COORDINATOR_NOT_AVAILABLE too.

    def initialise(
        self, key: SharePartitionKey, *, state_epoch: int, start_offset: int, now_ms: int
    ) -> Completion[None]:
        """InitializeShareGroupState; see `ShareStateShard.initialise`."""
        return self._submit(key, lambda shard: shard.initialise(key, state_epoch, start_offset, now_ms))

    def read(
        self, key: SharePartitionKey, *, leader_epoch: int, now_ms: int
    ) -> Completion[SharePartitionState]:
        """ReadShareGroupState; see `ShareStateShard.read`."""
        return self._submit(key, lambda shard: shard.read(key, leader_epoch, now_ms))

    def read_summary(self, key: SharePartitionKey) -> Completion[SharePartitionState | None]:
        """ReadShareGroupStateSummary; see `ShareStateShard.read_summary`."""
        return self._submit(key, lambda shard: shard.read_summary(key))

    def write(self, key: SharePartitionKey, write: StateWrite, *, now_ms: int) -> Completion[None]:
        """WriteShareGroupState; see `ShareStateShard.write`."""
        return self._submit(key, lambda shard: shard.write(key, write, now_ms))

    def write_whole(self, key: SharePartitionKey, write: StateWrite, *, now_ms: int) -> Completion[None]:
        """A leader's write that leaves nothing of the state before; see `ShareStateShard.write_whole`."""
        return self._submit(key, lambda shard: shard.write_whole(key, write, now_ms))

    def delete(self, key: SharePartitionKey) -> Completion[None]:
        """DeleteShareGroupState; see `ShareStateShard.delete`."""
        return self._submit(key, lambda shard: shard.delete(key))

    # Upkeep; nobody waits for it.

    def on_topics_deleted(self, topic_ids: Collection[UUID]) -> None:
        """Topics are gone, and all their states with them."""
        for partition in self._loaded():
            self._run(partition, lambda shard: shard.forget_topics(topic_ids))

    def snapshot_cold(self, now_ms: int) -> None:
        """Write anew the states that have had no snapshot for `cold_interval_ms`."""
        cold_interval_ms = self._settings.cold_interval_ms
        for partition in self._loaded():
            self._run(partition, lambda shard: shard.snapshot_cold(cold_interval_ms, now_ms))

    def prune(self) -> None:
        """Let go of the records that newer ones stand for, as far as they are a log's oldest."""
        for partition in self._loaded():
            offset = self._partitions[partition].shard.lowest_needed_offset()
            if offset > self._pruned_offsets.get(partition, 0):
                self._pruned_offsets[partition] = offset
                self._log.delete_before(partition, offset)

    def _loaded(self) -> list[int]:
        return [index for index, partition in enumerate(self._partitions) if partition.runtime.loaded]

    def _empty(self, index: int) -> _Partition:
        shard = ShareStateShard(self._catalog, self._settings.updates_per_snapshot)
        runtime = PartitionRuntime(
            index,
            self._log,
            encode=encode_share_state_record,
            replay=shard.replay,
            max_queued_operations=self._settings.max_queued_operations,
        )
        return _Partition(shard, runtime)

    def _submit(
        self, key: SharePartitionKey, operation: Callable[[ShareStateShard], Steps[_T]]
    ) -> Completion[_T]:
        return self._run(self.partition_of(key), operation)

    def _run(self, partition: int, operation: Callable[[ShareStateShard], Steps[_T]]) -> Completion[_T]:
        shard, runtime = self._partitions[partition]
        return runtime.submit(lambda: operation(shard))
