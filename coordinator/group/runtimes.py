"""The partitions of `__consumer_offsets` at work, whatever type of group a record is of, or an offset.

One runtime a partition, so that records of all types stand in one order, as in Kafka: a group's deletion
under one type comes before its creation under another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from barnabas.coordinator.group.records import AnyGroupRecord, encode_record
from barnabas.coordinator.replay.interfaces import CoordinatorLog
from barnabas.coordinator.replay.key_partition import partition_of_key
from barnabas.coordinator.replay.partition_runtime import PartitionRuntime, TransactionReplay
from barnabas.protocol.errors import ApiError, ErrorCode

GroupRuntime: TypeAlias = PartitionRuntime[AnyGroupRecord]


class GroupReplay(TransactionReplay[AnyGroupRecord], Protocol):
    """Where records go, once they are in the log."""

    def replay(self, record: AnyGroupRecord, offset: int) -> None:
        """A record, of any type, that an operation has written outside of transactions."""
        ...


class GroupRuntimes:
    """A runtime for each partition."""

    def __init__(
        self, log: CoordinatorLog, groups: GroupReplay, *, partition_count: int, max_queued_operations: int
    ) -> None:
        self._log = log
        self._groups = groups
        self._max_queued_operations = max_queued_operations
        self._partitions = self._empty(partition_count)

    @property
    def partition_count(self) -> int:
        return len(self._partitions)

    def resize(self, partition_count: int) -> None:
        """Have so many partitions, none of them loaded. All that there were have been unloaded."""
        self._partitions = self._empty(partition_count)

    def _empty(self, partition_count: int) -> list[GroupRuntime]:
        return [
            PartitionRuntime[AnyGroupRecord](
                partition,
                self._log,
                encode=encode_record,
                replay=self._groups.replay,
                transactions=self._groups,
                max_queued_operations=self._max_queued_operations,
            )
            for partition in range(partition_count)
        ]

    @property
    def runtimes(self) -> Sequence[GroupRuntime]:
        """Those of all partitions, in their order."""
        return self._partitions

    def of_partition(self, partition: int) -> GroupRuntime:
        return self._partitions[partition]

    def of_hash(self, id_hash: int) -> GroupRuntime:
        """That of the groups whose ids have this hash (`absolute_hash`)."""
        return self._partitions[id_hash % len(self._partitions)]

    def partition_of(self, group_id: str) -> int:
        """The partition in which the group's records are."""
        return partition_of_key(group_id, len(self._partitions))

    def of_group(self, group_id: str) -> GroupRuntime:
        return self._partitions[self.partition_of(group_id)]

    def check_loaded(self, group_id: str) -> None:
        """COORDINATOR_LOAD_IN_PROGRESS if the group's partition isn't loaded."""
        if not self.of_group(group_id).loaded:
            raise ApiError(ErrorCode.coordinator_load_in_progress, "The groups are being loaded.")
