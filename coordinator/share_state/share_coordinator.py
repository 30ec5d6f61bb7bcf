"""The share coordinator (KIP-932): each call becomes an operation on the partition that its key hashes to.

Operations on one partition run one after another. An operation that writes is answered when its record is
appended and replayed. Calls come on the loop's thread; the times that they pass are wall time in ms.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar
from uuid import UUID

from barnabas.coordinator.replay.interfaces import CoordinatorLog, Stored, TopicCatalog
from barnabas.coordinator.replay.partition_operations import PartitionOperations
from barnabas.coordinator.replay.topic_operations import TopicOperations
from barnabas.coordinator.share_state.loading import RecordsInForce
from barnabas.coordinator.share_state.shard import ShareStateShard, Steps
from barnabas.protocol.identity import SharePartitionKey
from barnabas.protocol.share_state_records import ShareStateRecord, encode_share_state_record
from barnabas.runtime.completion import Completion
from barnabas.runtime.moment import Moment, written_at
from barnabas.storage.format.partition_metadata import decode_id, encode_id
from barnabas.storage.format.share_partition_state import SharePartitionState, StateWrite

_T = TypeVar("_T")


class ShareStateLog(CoordinatorLog, Protocol):
    """The partitions of `__share_group_state`."""

    def delete_before(self, partition: int, offset: int) -> None:
        """Delete the records below `offset` once the later ones are flushed. The caller does not wait."""
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
    """The states of all share-partitions of this broker."""

    def __init__(
        self,
        *,
        log: ShareStateLog,
        catalog: TopicCatalog,
        settings: ShareCoordinatorSettings,
        now_ms: Callable[[], int],
        wall_ms: Callable[[], int],
    ) -> None:
        """`now_ms` is monotonic, `wall_ms` the time of day."""
        self._now_ms = now_ms
        self._wall_ms = wall_ms
        self._log = log
        self._catalog = catalog
        self._settings = settings
        self._shards = [self._new_shard() for _ in range(settings.partition_count)]
        self.operations = TopicOperations(self._new_partition, settings.partition_count)
        self._pruned_offsets: dict[int, int] = {}

    @property
    def pruned_offsets(self) -> Mapping[int, int]:
        """By partition, the offset below which records were deleted; only partitions with such an offset."""
        return self._pruned_offsets

    @property
    def partition_count(self) -> int:
        return self.operations.partition_count

    def partition_of(self, key: SharePartitionKey) -> int:
        """The partition of `__share_group_state` that holds this share-partition."""
        return self.operations.partition_of(coordinator_key(key))

    def states(self) -> Mapping[SharePartitionKey, SharePartitionState]:
        """The states of all loaded partitions."""
        return {key: state for shard in self._shards for key, state in shard.states.items()}

    def holds(self, key: SharePartitionKey) -> bool:
        """Whether the share-partition has been initialised, in a loaded partition."""
        return key in self._shards[self.partition_of(key)]

    def state_epoch(self, key: SharePartitionKey) -> int:
        """The newest epoch of the share-partition's state in a loaded partition; -1 without a state."""
        return self._shards[self.partition_of(key)].state_epoch(key)

    # Loading

    def load(self, partition: int, records: Iterable[Stored]) -> Iterator[None]:
        """Replay a partition's log, oldest first, one record per step. The last step admits operations;
        before it no state of the partition is visible.

        RecordFormatError if a record is malformed.
        """
        operations = self.operations.partitions[partition]
        assert not operations.loaded
        loaded = self._new_shard()
        in_force = RecordsInForce()
        for stored in records:
            in_force.add(stored)
            yield
        for record, offset in in_force.decoded():
            loaded.replay(record, offset, self._moment().monotonic_of)
            yield
        self._shards[partition] = loaded
        operations.loaded = True

    def unload(self, partition: int) -> None:
        """Forget a partition's states, because its log may hold less than was replayed.

        Until it is loaded again its operations, including those under way, are refused with
        COORDINATOR_LOAD_IN_PROGRESS.
        """
        self.operations.unload(partition)
        self._shards[partition] = self._new_shard()
        self._pruned_offsets.pop(partition, None)

    def resize(self, partition_count: int) -> None:
        """The topic has this number of partitions. All earlier ones must have been unloaded."""
        self._shards = [self._new_shard() for _ in range(partition_count)]
        self.operations.resize(partition_count)

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
        """A leader's write that replaces the whole state; see `ShareStateShard.write_whole`."""
        return self._submit(key, lambda shard: shard.write_whole(key, write, now_ms))

    def delete(self, key: SharePartitionKey) -> Completion[None]:
        """DeleteShareGroupState; see `ShareStateShard.delete`."""
        return self._submit(key, lambda shard: shard.delete(key))

    # Upkeep; the caller does not wait.

    def on_topics_deleted(self, topic_ids: Collection[UUID]) -> None:
        """Topics were deleted, and all their states with them."""
        for partition in self._loaded():
            self._run(partition, lambda shard: shard.forget_topics(topic_ids))

    def snapshot_cold(self) -> None:
        """Write a new snapshot of the states that have had none for `cold_interval_ms`."""
        cold_interval_ms, moment = self._settings.cold_interval_ms, self._moment()
        for partition in self._loaded():
            self._run(partition, lambda shard: shard.snapshot_cold(cold_interval_ms, moment))

    def prune(self) -> None:
        """Delete the oldest records of each log, up to the first one that no newer record replaces."""
        for partition in self._loaded():
            offset = self._shards[partition].lowest_needed_offset()
            if offset > self._pruned_offsets.get(partition, 0):
                self._pruned_offsets[partition] = offset
                self._log.delete_before(partition, offset)

    def _moment(self) -> Moment:
        return Moment(self._now_ms(), self._wall_ms())

    def _loaded(self) -> list[int]:
        return [index for index, operations in enumerate(self.operations.partitions) if operations.loaded]

    def _new_shard(self) -> ShareStateShard:
        return ShareStateShard(self._catalog, self._settings.updates_per_snapshot)

    def _new_partition(self, index: int) -> PartitionOperations[ShareStateRecord]:
        return PartitionOperations(
            index,
            self._log,
            encode=encode_share_state_record,
            replay=partial(self._replay, index),
            max_queued_operations=self._settings.max_queued_operations,
        )

    def _replay(self, partition: int, record: ShareStateRecord, offset: int) -> None:
        self._shards[partition].replay(record, offset, written_at(self._now_ms()))

    def _submit(
        self, key: SharePartitionKey, operation: Callable[[ShareStateShard], Steps[_T]]
    ) -> Completion[_T]:
        return self._run(self.partition_of(key), operation)

    def _run(self, partition: int, operation: Callable[[ShareStateShard], Steps[_T]]) -> Completion[_T]:
        return self.operations.submit(partition, partial(operation, self._shards[partition]))
