"""New checkpoints for the groups whose newest ones keep old segments from going.

For `share.state.store=log` alone: with the topic, a log holds no share state that anybody reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from barnabas.protocol.control_record import ControlType, ShareCheckpoint
from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.share.leader.share_partitions import GroupFacts, SharePartitions
from barnabas.share.log_store.log_state_store import LogStateStore
from barnabas.storage.errors import ShareStateLost
from barnabas.storage.format.share_index import group_hash
from barnabas.storage.log.partition_log import PartitionLog


class PinnedCheckpoints:
    """Moves the state of groups to the end of their logs."""

    def __init__(self, share_partitions: SharePartitions, store: LogStateStore, groups: GroupFacts) -> None:
        self._share_partitions = share_partitions
        self._store = store
        self._groups = groups

    def renew(self, partition: TopicIdPartition, log: PartitionLog, group_ids: Iterable[str]) -> None:
        """Segments that could go hold the newest checkpoints of these groups.

        Each gets a new one at the end of the log; a group that is gone, its deletion cut short by a crash,
        ends. One whose state is lost keeps its segments until an administrator sets or deletes its offsets.
        """
        for group_id in group_ids:
            key = SharePartitionKey(group_id, *partition)
            if self._share_partitions.under_way(key) is None:
                with suppress(ShareStateLost):
                    self._renew(key, log)

    def _renew(self, key: SharePartitionKey, log: PartitionLog) -> None:
        checkpoint = _newest_checkpoint(log, key.group_id)
        if checkpoint is None:
            return
        incarnation = checkpoint.group_incarnation
        if self._groups.group_incarnation(key.group_id) == incarnation:
            leader = self._share_partitions.lead(key, log)
            assert leader is not None, "a log's state is there at once"
            leader.checkpoint()
            return
        store = self._store.decisions_of(key.topic_id_partition, log)
        image = store.load(key.group_id, incarnation)
        if image is not None:
            store.reset(key.group_id, image, deleted=True)


def _newest_checkpoint(log: PartitionLog, group_id: str) -> ShareCheckpoint | None:
    """The one that the group's state begins with; None if there is none, or the group was deleted."""
    for entry in log.share_records.newest(group_hash(group_id)):
        if entry.kind == ControlType.SHARE_CHECKPOINT:
            _, record = log.share_records.read(entry)
            assert isinstance(record, ShareCheckpoint), entry
            if record.group_id == group_id:
                return None if record.deleted else record
    return None
