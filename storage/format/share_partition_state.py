"""What is kept of one share-partition, and its records (KIP-932, "Share-group state records").

A snapshot is the whole state; an update brings start offset, complete count, leader epoch and the batches
that changed. Both are values: a state is never changed, another takes its place when a record is replayed.
Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from barnabas.protocol.identity import SharePartitionKey
from barnabas.protocol.share_state_records import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareStateRecord,
    ShareUpdateKey,
    ShareUpdateValue,
    StateBatchValue,
)
from barnabas.storage.format.state_batches import StateBatch, combine

UNDECIDED_OFFSET = -1
UNKNOWN_COUNT = -1
"""The delivery complete count of a share-partition without a start offset."""
NO_EPOCH = -1
"""Nothing was written in any epoch."""
UNCHANGED_OFFSET = -1
"""In a write: the start offset stays."""


class StateWrite(NamedTuple):
    """The change that a leader wants written: its epochs, where the share-partition starts (-1 leaves it as
    it is), how many records from there on are final, and the batches that changed.
    """

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    state_batches: Sequence[StateBatch] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SharePartitionState:
    """Offsets are in the partition's log; timestamps in ms of wall time. `snapshot_epoch` grows with each
    snapshot."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    state_batches: Sequence[StateBatch]
    create_timestamp_ms: int = 0
    write_timestamp_ms: int = 0

    def updated(self, update: ShareUpdateValue) -> SharePartitionState:
        """This state once `update` has been written behind it."""
        start_offset = self.start_offset if update.start_offset == UNCHANGED_OFFSET else update.start_offset
        return replace(
            self,
            start_offset=start_offset,
            delivery_complete_count=update.delivery_complete_count,
            leader_epoch=self.leader_epoch if update.leader_epoch == NO_EPOCH else update.leader_epoch,
            state_batches=combine(self.state_batches, _batches(update.state_batches), start_offset),
        )

    def in_effect(self, write: StateWrite) -> StateWrite:
        """`write` with the start offset and the count that hold after it.

        The start never goes back; at the same start the count never does.
        """
        if write.start_offset > self.start_offset:
            return write
        count = self.delivery_complete_count
        if write.start_offset == self.start_offset:
            count = max(count, write.delivery_complete_count)
        return write._replace(start_offset=self.start_offset, delivery_complete_count=count)

    def rewritten(self, write: StateWrite, leader_epoch: int, now_ms: int) -> SharePartitionState:
        """The state that a snapshot in place of an update records."""
        start_offset = self.start_offset if write.start_offset == UNCHANGED_OFFSET else write.start_offset
        return replace(
            self,
            snapshot_epoch=self.snapshot_epoch + 1,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=write.delivery_complete_count,
            state_batches=combine(self.state_batches, write.state_batches, start_offset),
            create_timestamp_ms=now_ms,
            write_timestamp_ms=now_ms,
        )


def state_of_snapshot(snapshot: ShareSnapshotValue) -> SharePartitionState:
    """The state that a snapshot records."""
    return SharePartitionState(
        snapshot_epoch=snapshot.snapshot_epoch,
        state_epoch=snapshot.state_epoch,
        leader_epoch=snapshot.leader_epoch,
        start_offset=snapshot.start_offset,
        delivery_complete_count=snapshot.delivery_complete_count,
        state_batches=_batches(snapshot.state_batches),
        create_timestamp_ms=snapshot.create_timestamp_ms,
        write_timestamp_ms=snapshot.write_timestamp_ms,
    )


def state_of_update(update: ShareUpdateValue) -> SharePartitionState:
    """What an update says whose snapshot isn't known."""
    return SharePartitionState(
        snapshot_epoch=update.snapshot_epoch,
        state_epoch=0,
        leader_epoch=update.leader_epoch,
        start_offset=update.start_offset,
        delivery_complete_count=update.delivery_complete_count,
        state_batches=_batches(update.state_batches),
    )


def initial_state(
    snapshot_epoch: int, state_epoch: int, start_offset: int, now_ms: int
) -> SharePartitionState:
    """A state that begins, or begins anew, at `start_offset` (-1: undecided)."""
    is_decided = start_offset != UNDECIDED_OFFSET
    return SharePartitionState(
        snapshot_epoch=snapshot_epoch,
        state_epoch=state_epoch,
        leader_epoch=0,
        start_offset=start_offset,
        delivery_complete_count=0 if is_decided else UNKNOWN_COUNT,
        state_batches=(),
        create_timestamp_ms=now_ms,
        write_timestamp_ms=now_ms,
    )


def snapshot_record(key: SharePartitionKey, state: SharePartitionState) -> ShareStateRecord:
    """The whole state."""
    return _snapshot_key(key), ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        create_timestamp_ms=state.create_timestamp_ms,
        write_timestamp_ms=state.write_timestamp_ms,
        state_batches=_values(state.state_batches),
    )


def update_record(
    key: SharePartitionKey, snapshot_epoch: int, leader_epoch: int, write: StateWrite
) -> ShareStateRecord:
    """What `write` changes in the state since its newest snapshot."""
    update_key = ShareUpdateKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)
    return update_key, ShareUpdateValue(
        snapshot_epoch=snapshot_epoch,
        leader_epoch=leader_epoch,
        start_offset=write.start_offset,
        delivery_complete_count=write.delivery_complete_count,
        state_batches=_values(combine((), write.state_batches, write.start_offset)),
    )


def tombstone_record(key: SharePartitionKey) -> ShareStateRecord:
    """The end of the state."""
    return _snapshot_key(key), None


def _snapshot_key(key: SharePartitionKey) -> ShareSnapshotKey:
    return ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)


def _batches(values: Sequence[StateBatchValue]) -> list[StateBatch]:
    return [
        StateBatch(value.first_offset, value.last_offset, value.delivery_count, value.delivery_state)
        for value in values
    ]


def _values(batches: Sequence[StateBatch]) -> tuple[StateBatchValue, ...]:
    return tuple(
        StateBatchValue(
            first_offset=batch.first_offset,
            last_offset=batch.last_offset,
            delivery_state=batch.delivery_state,
            delivery_count=batch.delivery_count,
        )
        for batch in batches
    )
