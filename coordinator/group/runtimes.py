"""The partitions of `__consumer_offsets` at work, whatever type of group a record is of, or an offset.

One runtime a partition, so that records of all types stand in one order, as in Kafka: a group's deletion
under one type comes before its creation under another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from barnabas.coordinator.group.partition_hash import GROUP_PARTITION_COUNT, partition_of_group
from barnabas.coordinator.group.records import AnyGroupRecord, encode_record
from barnabas.coordinator.runtime.interfaces import CoordinatorLog
from barnabas.coordinator.runtime.partition_runtime import PartitionRuntime, TransactionReplay
from barnabas.protocol.errors import ApiError, ErrorCode

GroupRuntime: TypeAlias = PartitionRuntime[AnyGroupRecord]


class GroupReplay(TransactionReplay[AnyGroupRecord], Protocol):
    """Where records go, once they are in the log."""

    def replay(self, record: AnyGroupRecord, offset: int) -> None:
        """A record, of any type, that an operation has written outside of transactions."""
        ...


class GroupRuntimes:
    """A runtime for each partition."""

    def __init__(self, log: CoordinatorLog, groups: GroupReplay, *, max_queued_operations: int) -> None:
        self._partitions = [
            PartitionRuntime[AnyGroupRecord](
                partition,
                log,
                encode=encode_record,
                replay=groups.replay,
                transactions=groups,
                max_queued_operations=max_queued_operations,
            )
            for partition in range(GROUP_PARTITION_COUNT)
        ]

    @property
    def runtimes(self) -> Sequence[GroupRuntime]:
        """Those of all partitions, in their order."""
        return self._partitions

    def of_partition(self, partition: int) -> GroupRuntime:
        return self._partitions[partition]

    def of_group(self, group_id: str) -> GroupRuntime:
        return self._partitions[partition_of_group(group_id)]

    def check_loaded(self, group_id: str) -> None:
        """COORDINATOR_LOAD_IN_PROGRESS if the group's partition isn't loaded."""
        if not self.of_group(group_id).loaded:
            raise ApiError(ErrorCode.coordinator_load_in_progress, "The groups are being loaded.")
