"""The state of one share-partition in `__share_group_state`, and its records (KIP-932, "Share-group state
records").

A snapshot is the whole state. An update has the start offset, the complete count, the leader epoch and the
changed batches. States are immutable: replaying a record replaces the state. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from barnabas.protocol.delivery_state import decode_condition, encode_condition
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
"""The epoch before the first write."""
UNCHANGED_OFFSET = -1
"""The start offset of a write that does not change it."""


class StateWrite(NamedTuple):
    """A change that a leader writes: its epochs, the start offset (-1: unchanged), the number of final
    records from there on, and the changed batches.
    """

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    state_batches: Sequence[StateBatch] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SharePartitionState:
    """The state. Offsets are those of the partition's log; timestamps are wall time in ms. `snapshot_epoch`
    grows with each snapshot."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    state_batches: Sequence[StateBatch]
    create_timestamp_ms: int = 0
    write_timestamp_ms: int = 0

    def updated(self, update: ShareUpdateValue) -> SharePartitionState:
        """The state after `update`."""
        start_offset = self.start_offset if update.start_offset == UNCHANGED_OFFSET else update.start_offset
        return replace(
            self,
            start_offset=start_offset,
            delivery_complete_count=update.delivery_complete_count,
            leader_epoch=self.leader_epoch if update.leader_epoch == NO_EPOCH else update.leader_epoch,
            state_batches=combine(self.state_batches, batches_of(update.state_batches), start_offset),
        )

    def in_effect(self, write: StateWrite) -> StateWrite:
        """`write` with the start offset and the count that are in effect after it.

        The start offset never decreases. At the same start offset the count never decreases.
        """
        if write.start_offset > self.start_offset:
            return write
        count = self.delivery_complete_count
        if write.start_offset == self.start_offset:
            count = max(count, write.delivery_complete_count)
        return write._replace(start_offset=self.start_offset, delivery_complete_count=count)

    def rewritten(self, write: StateWrite, leader_epoch: int, now_ms: int) -> SharePartitionState:
        """The state in a snapshot that is written instead of an update."""
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
    """The state in a snapshot."""
    return SharePartitionState(
        snapshot_epoch=snapshot.snapshot_epoch,
        state_epoch=snapshot.state_epoch,
        leader_epoch=snapshot.leader_epoch,
        start_offset=snapshot.start_offset,
        delivery_complete_count=snapshot.delivery_complete_count,
        state_batches=batches_of(snapshot.state_batches),
        create_timestamp_ms=snapshot.create_timestamp_ms,
        write_timestamp_ms=snapshot.write_timestamp_ms,
    )


def state_of_update(update: ShareUpdateValue) -> SharePartitionState:
    """The state in an update whose snapshot is unknown."""
    return SharePartitionState(
        snapshot_epoch=update.snapshot_epoch,
        state_epoch=0,
        leader_epoch=update.leader_epoch,
        start_offset=update.start_offset,
        delivery_complete_count=update.delivery_complete_count,
        state_batches=batches_of(update.state_batches),
    )


def initial_state(
    snapshot_epoch: int, state_epoch: int, start_offset: int, now_ms: int
) -> SharePartitionState:
    """A new state, or one that was reset, at `start_offset` (-1: undecided)."""
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
    """The record of the whole state."""
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
    """The record of a change since the newest snapshot."""
    update_key = ShareUpdateKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)
    return update_key, ShareUpdateValue(
        snapshot_epoch=snapshot_epoch,
        leader_epoch=leader_epoch,
        start_offset=write.start_offset,
        delivery_complete_count=write.delivery_complete_count,
        state_batches=_values(combine((), write.state_batches, write.start_offset)),
    )


def tombstone_record(key: SharePartitionKey) -> ShareStateRecord:
    """The record that deletes the state."""
    return _snapshot_key(key), None


def _snapshot_key(key: SharePartitionKey) -> ShareSnapshotKey:
    return ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)


def batches_of(values: Sequence[StateBatchValue]) -> list[StateBatch]:
    """The batches of a record. RecordFormatError for an unknown condition."""
    return [
        StateBatch(
            value.first_offset,
            value.last_offset,
            value.delivery_count,
            value.delivery_state,
            decode_condition(value.condition) if value.condition else None,
        )
        for value in values
    ]


def _values(batches: Sequence[StateBatch]) -> tuple[StateBatchValue, ...]:
    return tuple(
        StateBatchValue(
            first_offset=batch.first_offset,
            last_offset=batch.last_offset,
            delivery_state=batch.delivery_state,
            delivery_count=batch.delivery_count,
            condition=b"" if batch.condition is None else encode_condition(batch.condition),
        )
        for batch in batches
    )
