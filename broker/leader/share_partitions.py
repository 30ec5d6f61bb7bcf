"""The share-partitions that this broker leads, each loaded from its log when it is first asked for.

A group that reads a thousand partitions costs nothing here until it fetches from them, and a leader in
which nothing is in flight can be dropped at any time: what it knew is in the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol
from uuid import UUID

from barnabas.broker.clock import Clock
from barnabas.broker.deadlines import Deadlines
from barnabas.broker.leader.log_state_store import LogStateStore
from barnabas.broker.leader.share_partition_leader import SharePartitionLeader, undecided_image
from barnabas.broker.purgatory import Purgatory
from barnabas.broker.share.limits import ShareLimits
from barnabas.protocol.control_record import ControlType, ShareCheckpoint
from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.storage.append import Append
from barnabas.storage.format.share_index import group_hash
from barnabas.storage.log import PartitionLog


class GroupFacts(Protocol):
    """What the leaders need to know of share groups."""

    def group_incarnation(self, group_id: str) -> int | None:
        """Tells a group from an earlier one of the same name; None if there is no such group."""
        ...

    def group_epoch(self, group_id: str) -> int: ...


class SharePartitions:
    """All leaders of one broker, by key and by partition. Used on the loop's thread only."""

    def __init__(
        self,
        *,
        clock: Clock,
        deadlines: Deadlines,
        purgatory: Purgatory,
        groups: GroupFacts,
        limits: Callable[[str], ShareLimits],
        deltas_per_checkpoint: int,
    ) -> None:
        self.clock = clock
        self._deadlines = deadlines
        self._purgatory = purgatory
        self._groups = groups
        self._limits = limits
        self._deltas_per_checkpoint = deltas_per_checkpoint
        self._stores: dict[TopicIdPartition, LogStateStore] = {}
        self._leaders: dict[SharePartitionKey, SharePartitionLeader] = {}
        self._groups_by_partition: dict[TopicIdPartition, set[str]] = {}
        self._resets: dict[SharePartitionKey, Append] = {}

    def __iter__(self) -> Iterator[SharePartitionLeader]:
        return iter(self._leaders.values())

    def get(self, key: SharePartitionKey) -> SharePartitionLeader | None:
        """The leader, if it has been loaded."""
        return self._leaders.get(key)

    def lead(self, key: SharePartitionKey, log: PartitionLog) -> SharePartitionLeader:
        """The leader, loaded if need be from its partition's open log. The group exists, and no reset of its
        state is under way.

        Reads at most one checkpoint and the deltas behind it. Raises StorageError.
        """
        leader = self._leaders.get(key)
        if leader is None:
            leader = self._leaders[key] = self._load(key, log)
            self._groups_by_partition.setdefault(key.topic_id_partition, set()).add(key.group_id)
        return leader

    def store(self, partition: TopicIdPartition, log: PartitionLog) -> LogStateStore:
        """Where the state of every group on this partition is recorded."""
        store = self._stores.get(partition)
        if store is None:
            store = LogStateStore(log, self.clock.wall_ms, self._deltas_per_checkpoint)
            self._stores[partition] = store
        assert store.log is log, f"{partition} was opened anew, and its leaders not forgotten"
        return store

    def forget(self, key: SharePartitionKey) -> None:
        """Stop leading: the state was reset or deleted, or its topic was. Those who wait look again."""
        leader = self._leaders.pop(key, None)
        if leader is not None:
            self._groups_by_partition[key.topic_id_partition].discard(key.group_id)
            leader.closed = True
            self._deadlines.cancel(leader)
            self.changed(key)

    def hold_back(self, key: SharePartitionKey, reset: Append) -> None:
        """Stop leading until `reset` has ended: a leader loaded before that would begin from what is no more.

        The ticket of the latest reset counts.
        """
        self._resets[key] = reset
        self.forget(key)
        reset.add_done_callback(lambda ended: self._reset_ended(key, ended))

    def reset_under_way(self, key: SharePartitionKey) -> Append | None:
        """What to wait for before the leader can be asked for; None if nothing."""
        return self._resets.get(key)

    def forget_topic(self, topic_id: UUID, partition_count: int) -> None:
        """The topic is gone, and its logs with it."""
        for index in range(partition_count):
            self.forget_partition(TopicIdPartition(topic_id, index))

    def forget_partition(self, partition: TopicIdPartition) -> None:
        """The log that the leaders worked on is no more."""
        for group_id in list(self._groups_by_partition.get(partition, ())):
            self.forget(SharePartitionKey(group_id, *partition))
        self._groups_by_partition.pop(partition, None)
        self._stores.pop(partition, None)

    def log_moved(self, partition: TopicIdPartition, log: PartitionLog) -> None:
        """The log's high watermark or start has moved."""
        for group_id in self._groups_by_partition.get(partition, ()):
            leader = self._leaders[SharePartitionKey(group_id, *partition)]
            if leader.core.spso < log.log_start_offset:
                leader.follow_log_start()

    def log_pinned(self, partition: TopicIdPartition, log: PartitionLog, group_ids: Iterable[str]) -> None:
        """Segments that could go hold the newest checkpoints of these groups.

        Each gets a new one at the end of the log; a group that is gone, its deletion cut short by a crash,
        ends.
        """
        for group_id in group_ids:
            key = SharePartitionKey(group_id, *partition)
            if self.reset_under_way(key) is not None:
                continue
            checkpoint = _newest_checkpoint(log, group_id)
            if checkpoint is None:
                continue
            incarnation = checkpoint.group_incarnation
            if self._groups.group_incarnation(group_id) == incarnation:
                self.lead(key, log).checkpoint()
                continue
            store = self.store(partition, log)
            image = store.load(group_id, incarnation)
            if image is not None:
                store.reset(group_id, image, deleted=True)

    # What leaders call (`Surroundings`).

    def limits(self, group_id: str) -> ShareLimits:
        return self._limits(group_id)

    def deadline_moved(self, leader: SharePartitionLeader, deadline_ms: int) -> None:
        self._deadlines.schedule(leader, deadline_ms)

    def changed(self, key: SharePartitionKey) -> None:
        self._purgatory.wake(key)

    def _reset_ended(self, key: SharePartitionKey, ended: Append) -> None:
        if self._resets.get(key) is ended:
            del self._resets[key]
            self.changed(key)

    def _load(self, key: SharePartitionKey, log: PartitionLog) -> SharePartitionLeader:
        incarnation = self._groups.group_incarnation(key.group_id)
        assert incarnation is not None, f"{key.group_id} is asked for after it was deleted"
        store = self.store(key.topic_id_partition, log)
        image = store.load(key.group_id, incarnation)
        if image is None:
            image = undecided_image(log, incarnation, self._groups.group_epoch(key.group_id))
        leader = SharePartitionLeader(key, log, image, store, self)
        if leader.core.is_initialised:
            leader.follow_log_start()
        return leader


def _newest_checkpoint(log: PartitionLog, group_id: str) -> ShareCheckpoint | None:
    """The one that the group's state begins with; None if there is none, or the group was deleted."""
    for entry in log.newest_control_entries(group_hash(group_id)):
        if entry.kind == ControlType.SHARE_CHECKPOINT:
            _, record = log.read_control_record(entry)
            assert isinstance(record, ShareCheckpoint), entry
            if record.group_id == group_id:
                return None if record.deleted else record
    return None
