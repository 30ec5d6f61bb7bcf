"""Translates the records of one share-partition in `__share_group_state` to equivalent control records.

Apache Kafka, and Barnabas with `share.state.store=topic`, keep snapshots and updates there (KIP-932,
"Share-group state records"). A snapshot becomes a checkpoint, an update a delta, so that one replay serves
both stores. An update that moves the start offset over records without an outcome is followed by a
checkpoint. Records of the state topic have no causes, members or incarnations; those of Barnabas name the
reason of a dead letter.

Batches that change nothing are left out: a coordinator may get a write twice, and a late write must not undo
anything. An acknowledgement that waits for a transaction changes nothing before the transaction ends. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from barnabas.pipeline.audit.control_walk import ENTRY_HEAD
from barnabas.protocol.control_record import (
    ControlType,
    ShareCheckpoint,
    ShareDelta,
    encode_checkpoint,
    encode_delta,
)
from barnabas.protocol.delivery_state import (
    LetterPlace,
    PendingAcknowledgement,
    RecordState,
    StateRange,
    is_final,
)
from barnabas.protocol.share_state_records import ShareSnapshotValue, ShareUpdateValue
from barnabas.storage.format.share_partition_state import (
    UNDECIDED_OFFSET,
    SharePartitionState,
    batches_of,
    state_of_snapshot,
)
from barnabas.storage.format.state_batches import StateBatch, clip_below

_NO_INCARNATION: Final = 0
_NO_OFFSET: Final = -1


class StateTranslation:
    """Takes the records of one share-partition in the order of the log, and returns entries of a pack."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._state: SharePartitionState | None = None
        self._checkpoint_epoch = 0
        self._last_offset = _NO_OFFSET
        self._is_begun = False
        """Whether the first snapshot of the share-partition is among the records."""

    def take_snapshot(self, snapshot: ShareSnapshotValue, offset: int, now_ms: int) -> bytes:
        """`offset` is that of the record, `now_ms` its time."""
        self._is_begun = self._is_begun or (snapshot.snapshot_epoch == 0 and not self._checkpoint_epoch)
        self._state = state_of_snapshot(snapshot)
        return self._checkpoint(self._state, offset, now_ms) if self._is_decided(self._state) else b""

    def take_tombstone(self, offset: int, now_ms: int) -> bytes:
        """The end of the state."""
        state, self._state = self._state, None
        if state is None or not self._is_decided(state):
            return b""
        return self._checkpoint(state, offset, now_ms, deleted=True)

    def take_update(self, update: ShareUpdateValue, offset: int, now_ms: int) -> bytes:
        """An update whose snapshot is not among the records is a delta that follows nothing."""
        before = self._state
        if before is None:
            return self._delta(update.leader_epoch, (), offset, now_ms)
        after = self._state = before.updated(update)
        if not self._is_decided(after):
            return b""
        entries = b""
        if not self._is_decided(before):
            before = replace(after, state_batches=())
            entries += self._checkpoint(before, offset, now_ms)
        moved = replace(before, state_batches=before.updated(replace(update, start_offset=-1)).state_batches)
        changes = tuple(_changes(before, batches_of(update.state_batches)))
        entries += self._delta(after.leader_epoch, changes, offset, now_ms)
        if after.start_offset > _end_of_final(moved):
            entries += self._checkpoint(after, offset, now_ms)
        return entries

    def _is_decided(self, state: SharePartitionState) -> bool:
        return state.start_offset != UNDECIDED_OFFSET

    def _checkpoint(
        self, state: SharePartitionState, offset: int, now_ms: int, *, deleted: bool = False
    ) -> bytes:
        is_first = self._checkpoint_epoch == 0
        self._checkpoint_epoch += 1 if self._is_begun or not is_first else 2
        last = max((batch.last_offset for batch in state.state_batches), default=state.start_offset - 1)
        checkpoint = ShareCheckpoint(
            group_id=self._group,
            group_incarnation=_NO_INCARNATION,
            checkpoint_epoch=self._checkpoint_epoch,
            decided_at_ms=now_ms,
            state_epoch=state.state_epoch,
            leader_epoch=state.leader_epoch,
            start_offset=state.start_offset,
            end_offset=max(last + 1, state.start_offset),
            delivery_complete_count=state.delivery_complete_count,
            states=[_range(batch) for batch in clip_below(state.state_batches, state.start_offset)],
            deleted=deleted,
        )
        _, value = encode_checkpoint(checkpoint)
        return self._entry(ControlType.SHARE_CHECKPOINT, state.leader_epoch, offset, value)

    def _delta(self, leader_epoch: int, states: Sequence[StateRange], offset: int, now_ms: int) -> bytes:
        delta = ShareDelta(
            self._group, _NO_INCARNATION, self._checkpoint_epoch, now_ms, self._last_offset, states
        )
        return self._entry(ControlType.SHARE_DELTA, leader_epoch, offset, encode_delta(delta)[1])

    def _entry(self, kind: ControlType, leader_epoch: int, offset: int, value: bytes) -> bytes:
        self._last_offset = offset
        return ENTRY_HEAD.pack(offset, leader_epoch, kind, len(value)) + value


def _changes(before: SharePartitionState, batches: Sequence[StateBatch]) -> Iterator[StateRange]:
    """The changes in the batches."""
    for batch in clip_below(batches, before.start_offset):
        is_known = any(
            known.first_offset <= batch.first_offset
            and batch.last_offset <= known.last_offset
            and known.rank >= batch.rank
            and not _is_pending(known)
            for known in before.state_batches
        )
        if not is_known and not _is_pending(batch):
            change = _range(batch)
            place = change.letter_place
            yield change if place is None else change._replace(cause=place.reason)


def _is_pending(batch: StateBatch) -> bool:
    return isinstance(batch.condition, PendingAcknowledgement)


def _range(batch: StateBatch) -> StateRange:
    """The range of a batch. Apache Kafka records no place of a dead letter."""
    state, condition = RecordState(batch.delivery_state), batch.condition
    if state is RecordState.ARCHIVING:
        condition = condition or LetterPlace()
    elif not _is_pending(batch):
        condition = None
    return StateRange(batch.first_offset, batch.last_offset, state, batch.delivery_count, condition=condition)


def _end_of_final(state: SharePartitionState) -> int:
    """The end of the final records that begin at the start offset, exclusive."""
    end = state.start_offset
    for batch in state.state_batches:
        if batch.first_offset > end or not is_final(RecordState(batch.delivery_state)):
            break
        end = batch.last_offset + 1
    return end
