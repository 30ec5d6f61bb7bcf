"""The operations on all groups and committed offsets: one queue for each partition of `__consumer_offsets`.

Records of all types stand in one order, as in Kafka: a group's deletion under one type comes before its
creation under another.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol, TypeAlias

from barnabas.coordinator.group.records import AnyGroupRecord, encode_record
from barnabas.coordinator.replay.interfaces import CoordinatorLog
from barnabas.coordinator.replay.partition_operations import PartitionOperations, TransactionReplay
from barnabas.coordinator.replay.topic_operations import TopicOperations

GroupOperations: TypeAlias = TopicOperations[AnyGroupRecord]


class GroupReplay(TransactionReplay[AnyGroupRecord], Protocol):
    """Takes over the records of groups once they are in the log."""

    def replay(self, record: AnyGroupRecord, offset: int) -> None:
        """A record of any type, written outside of transactions."""
        ...


def group_operations(
    log: CoordinatorLog, groups: GroupReplay, *, partition_count: int, max_queued_operations: int
) -> GroupOperations:
    """The operations on the groups in `log`, which has this number of partitions."""
    new_partition = partial(
        PartitionOperations[AnyGroupRecord],
        log=log,
        encode=encode_record,
        replay=groups.replay,
        transactions=groups,
        max_queued_operations=max_queued_operations,
    )
    return TopicOperations(new_partition, partition_count)
