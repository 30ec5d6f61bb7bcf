"""The partitions of a coordinator's topic: their operations, and the loading of their records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from barnabas.coordinator.replay.interfaces import Stored
from barnabas.coordinator.replay.key_partition import partition_of_key
from barnabas.coordinator.replay.partition_operations import PartitionOperations, being_loaded
from barnabas.coordinator.replay.steps import Operation
from barnabas.runtime.completion import Completion

_RecordT = TypeVar("_RecordT")
_T = TypeVar("_T")


class OperationCounts(Protocol):
    """The counts that metrics show, for records of any type."""

    @property
    def partition_count(self) -> int: ...

    @property
    def loaded_count(self) -> int:
        """Partitions that admit operations."""
        ...

    @property
    def queued_count(self) -> int:
        """Operations that wait for another one on their partition."""
        ...


class TopicOperations(Generic[_RecordT]):
    """The operations on each partition, by partition or by the key that hashes to it."""

    def __init__(
        self, new_partition: Callable[[int], PartitionOperations[_RecordT]], partition_count: int
    ) -> None:
        """`new_partition` makes the operations of a partition that is not loaded yet."""
        self._new_partition = new_partition
        self._partitions = [new_partition(index) for index in range(partition_count)]

    @property
    def partitions(self) -> Sequence[PartitionOperations[_RecordT]]:
        """The operations of all partitions, in their order."""
        return self._partitions

    @property
    def partition_count(self) -> int:
        return len(self._partitions)

    @property
    def loaded_count(self) -> int:
        return sum(partition.loaded for partition in self._partitions)

    @property
    def all_loaded(self) -> bool:
        return all(partition.loaded for partition in self._partitions)

    @property
    def queued_count(self) -> int:
        return sum(partition.queued_count for partition in self._partitions)

    def partition_of(self, key: str) -> int:
        """The partition that holds the key's records."""
        return partition_of_key(key, len(self._partitions))

    def of_key(self, key: str) -> PartitionOperations[_RecordT]:
        return self._partitions[self.partition_of(key)]

    def of_hash(self, key_hash: int) -> PartitionOperations[_RecordT]:
        """The operations on keys with this hash (`absolute_hash`)."""
        return self._partitions[key_hash % len(self._partitions)]

    def check_loaded(self, key: str) -> None:
        """COORDINATOR_LOAD_IN_PROGRESS if the key's partition is not loaded."""
        if not self.of_key(key).loaded:
            raise being_loaded()

    def submit(self, partition: int, operation: Operation[_RecordT, _T]) -> Completion[_T]:
        """Run an operation on a partition; see `PartitionOperations.submit`."""
        return self._partitions[partition].submit(operation)

    def load(
        self, partition: int, records: Iterable[Stored], replay: Callable[[int, Stored], None]
    ) -> Iterator[None]:
        """Replay a partition's log, oldest first, one record per step. The last step admits operations."""
        assert not self._partitions[partition].loaded
        for stored in records:
            replay(partition, stored)
            yield
        self._partitions[partition].loaded = True

    def unload(self, partition: int) -> None:
        """Refuse operations on a partition until it is loaded again, including those under way."""
        self._partitions[partition].unload()

    def resize(self, partition_count: int) -> None:
        """Have this number of partitions, none of them loaded. All earlier ones must have been unloaded."""
        self._partitions = [self._new_partition(index) for index in range(partition_count)]
