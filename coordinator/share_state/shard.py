"""The share-partitions of one partition of `__share_group_state`: their states, changed by replay, and the
operations on them.

An operation checks its request and writes one record at most. It is refused with INVALID_REQUEST,
FENCED_LEADER_EPOCH, FENCED_STATE_EPOCH or UNKNOWN_TOPIC_OR_PARTITION, in Kafka's order. A read by a leader
with a newer epoch is written, so that the earlier leader is fenced from then on. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeAlias, TypeVar
from uuid import UUID

from barnabas.coordinator.replay import steps
from barnabas.coordinator.replay.interfaces import TopicCatalog
from barnabas.coordinator.replay.steps import Settle, Write
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import SharePartitionKey
from barnabas.protocol.share_state_records import ShareSnapshotValue, ShareStateRecord, ShareUpdateValue
from barnabas.runtime.completion import Completion
from barnabas.runtime.moment import Moment, MonotonicOf
from barnabas.storage.format.share_partition_state import (
    NO_EPOCH,
    SharePartitionState,
    StateWrite,
    initial_state,
    snapshot_record,
    state_of_snapshot,
    state_of_update,
    tombstone_record,
    update_record,
)

_T = TypeVar("_T")

Steps: TypeAlias = steps.Steps[ShareStateRecord, _T]

_RECORDS_PER_BATCH = 500
"""Records of one append in the background: a batch must not grow with the number of share-partitions."""


@dataclass(slots=True)
class _Entry:
    """One share-partition's state, with the facts about its records that the state does not have."""

    state: SharePartitionState
    needed_offset: int
    """The offset of its newest snapshot: its records from there on are needed."""
    written_ms: int
    """When (monotonic) that snapshot was written."""
    leader_epoch_max: int = NO_EPOCH
    state_epoch_max: int = NO_EPOCH
    update_count: int = 0
    """Updates since the newest snapshot."""


class ShareStateShard:
    """`updates_per_snapshot`: `share.coordinator.snapshot.update.records.per.snapshot`."""

    def __init__(self, catalog: TopicCatalog, updates_per_snapshot: int) -> None:
        self._catalog = catalog
        self._updates_per_snapshot = updates_per_snapshot
        self._entries: dict[SharePartitionKey, _Entry] = {}
        self._newest_snapshot_offset = 0

    @property
    def states(self) -> Mapping[SharePartitionKey, SharePartitionState]:
        """The states of all share-partitions of this shard."""
        return {key: entry.state for key, entry in self._entries.items()}

    def __contains__(self, key: SharePartitionKey) -> bool:
        return key in self._entries

    def state_epoch(self, key: SharePartitionKey) -> int:
        """The newest epoch in which the share-partition's state was begun; -1 if it has no state."""
        entry = self._entries.get(key)
        return NO_EPOCH if entry is None else entry.state_epoch_max

    def lowest_needed_offset(self) -> int:
        """Newer records replace all records below this offset; 0 before the first snapshot."""
        return min(
            (entry.needed_offset for entry in self._entries.values()), default=self._newest_snapshot_offset
        )

    # Replay

    def replay(self, record: ShareStateRecord, offset: int, monotonic_of: MonotonicOf) -> None:
        """Apply one record, which stands at `offset`."""
        record_key, value = record
        key = SharePartitionKey(record_key.group_id, record_key.topic_id, record_key.partition)
        if isinstance(value, ShareUpdateValue):
            self._replay_update(key, value, offset, monotonic_of)
            return
        self._newest_snapshot_offset = offset
        if isinstance(value, ShareSnapshotValue):
            self._replay_snapshot(key, value, offset, monotonic_of)
        else:
            self._entries.pop(key, None)

    def _replay_snapshot(
        self,
        key: SharePartitionKey,
        snapshot: ShareSnapshotValue,
        offset: int,
        monotonic_of: MonotonicOf,
    ) -> None:
        state, written_ms = state_of_snapshot(snapshot), monotonic_of(snapshot.write_timestamp_ms)
        entry = self._entries.setdefault(key, _Entry(state, offset, written_ms))
        entry.state = state
        entry.needed_offset = offset
        entry.written_ms = written_ms
        entry.update_count = 0
        entry.leader_epoch_max = max(entry.leader_epoch_max, snapshot.leader_epoch)
        entry.state_epoch_max = max(entry.state_epoch_max, snapshot.state_epoch)

    def _replay_update(
        self, key: SharePartitionKey, update: ShareUpdateValue, offset: int, monotonic_of: MonotonicOf
    ) -> None:
        entry = self._entries.get(key)
        if entry is None:
            state = state_of_update(update)
            written_ms = monotonic_of(state.write_timestamp_ms)
            entry = self._entries[key] = _Entry(state, offset, written_ms)
        else:
            entry.state = entry.state.updated(update)
        entry.update_count += 1
        entry.leader_epoch_max = max(entry.leader_epoch_max, update.leader_epoch)

    # Operations

    def initialise(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int, now_ms: int
    ) -> Steps[None]:
        """Begin the state, or begin it anew. `now_ms` is wall time, here and below."""
        _check_partition(key)
        _check_epochs(state_epoch=state_epoch)
        entry = self._entries.get(key)
        if entry is not None and state_epoch < entry.state_epoch_max:
            raise _fenced_state_epoch(entry)
        self._check_exists(key)
        snapshot_epoch = 0 if entry is None else entry.state.snapshot_epoch + 1
        yield Write([snapshot_record(key, initial_state(snapshot_epoch, state_epoch, start_offset, now_ms))])

    def read(self, key: SharePartitionKey, leader_epoch: int, now_ms: int) -> Steps[SharePartitionState]:
        """The state, for the leader with `leader_epoch`."""
        _check_partition(key)
        _check_epochs(leader_epoch=leader_epoch)
        entry = self._initialised(key)
        if leader_epoch < entry.leader_epoch_max:
            raise _fenced_leader_epoch(entry)
        self._check_exists(key)
        state = entry.state
        if leader_epoch != entry.leader_epoch_max:
            same = StateWrite(
                state.state_epoch, leader_epoch, state.start_offset, state.delivery_complete_count
            )
            yield Write([self._next_record(key, entry, same, leader_epoch, now_ms)])
        return state

    def read_summary(self, key: SharePartitionKey) -> Steps[SharePartitionState | None]:
        """The state without a check of epochs; None without a state."""
        _check_partition(key)
        self._check_exists(key)
        entry = self._entries.get(key)
        yield Settle(Completion.of(None))
        return None if entry is None else entry.state

    def write(self, key: SharePartitionKey, write: StateWrite, now_ms: int) -> Steps[None]:
        """Apply the leader's changes to the state."""
        entry = self._led(key, write)
        effective = entry.state.in_effect(write)
        yield Write([self._next_record(key, entry, effective, entry.state.leader_epoch, now_ms)])

    def write_whole(self, key: SharePartitionKey, write: StateWrite, now_ms: int) -> Steps[None]:
        """Replace the whole state by the leader's: batches that are not in it are gone."""
        entry = self._led(key, write)
        bare = replace(entry.state, state_batches=())
        yield Write([snapshot_record(key, bare.rewritten(write, entry.state.leader_epoch, now_ms))])

    def delete(self, key: SharePartitionKey) -> Steps[None]:
        """End the state; writes nothing without a state."""
        _check_partition(key)
        self._check_exists(key)
        if key in self._entries:
            yield Write([tombstone_record(key)])

    # Upkeep

    def forget_topics(self, topic_ids: Collection[UUID]) -> Steps[None]:
        """End the states in deleted topics."""
        gone = [key for key in self._entries if key.topic_id in topic_ids]
        for some in _some_at_a_time([tombstone_record(key) for key in gone]):
            yield Write(some)

    def snapshot_cold(self, cold_interval_ms: int, moment: Moment) -> Steps[None]:
        """Write new snapshots of states that have had none for this long, so that their older records are not
        needed.

        Writes nothing if all states have new snapshots already: without new records there is nothing to
        delete.
        """
        states = [entry.state for entry in self._entries.values()]
        if all(state.create_timestamp_ms != state.write_timestamp_ms for state in states):
            return
        cold = [
            snapshot_record(key, _rewritten_cold(entry.state, moment.wall_ms))
            for key, entry in self._entries.items()
            if moment.now_ms - entry.written_ms >= cold_interval_ms
        ]
        for some in _some_at_a_time(cold):
            yield Write(some)

    def _next_record(
        self, key: SharePartitionKey, entry: _Entry, write: StateWrite, leader_epoch: int, now_ms: int
    ) -> ShareStateRecord:
        if entry.update_count >= self._updates_per_snapshot:
            return snapshot_record(key, entry.state.rewritten(write, leader_epoch, now_ms))
        return update_record(key, entry.state.snapshot_epoch, leader_epoch, write)

    def _initialised(self, key: SharePartitionKey) -> _Entry:
        entry = self._entries.get(key)
        if entry is None:
            raise ApiError(ErrorCode.invalid_request, "The share-partition has not been initialised.")
        return entry

    def _led(self, key: SharePartitionKey, write: StateWrite) -> _Entry:
        """The state that `write` changes, unless its leader is fenced."""
        _check_partition(key)
        _check_epochs(leader_epoch=write.leader_epoch, state_epoch=write.state_epoch)
        entry = self._initialised(key)
        if write.leader_epoch < entry.leader_epoch_max:
            raise _fenced_leader_epoch(entry)
        if write.state_epoch < entry.state_epoch_max:
            raise _fenced_state_epoch(entry)
        self._check_exists(key)
        return entry

    def _check_exists(self, key: SharePartitionKey) -> None:
        topic = self._catalog.topic_by_id(key.topic_id)
        if topic is None or key.partition >= topic.partition_count:
            raise ApiError(ErrorCode.unknown_topic_or_partition, "There is no such topic or partition.")


def _check_partition(key: SharePartitionKey) -> None:
    if key.partition < 0:
        raise ApiError(ErrorCode.invalid_request, f"There is no partition {key.partition}.")


def _check_epochs(*, leader_epoch: int = 0, state_epoch: int = 0) -> None:
    if leader_epoch < 0:
        raise ApiError(ErrorCode.invalid_request, "The leader epoch cannot be a negative number.")
    if state_epoch < 0:
        raise ApiError(ErrorCode.invalid_request, "The state epoch cannot be a negative number.")


def _fenced_leader_epoch(entry: _Entry) -> ApiError:
    message = f"The share-partition is led in epoch {entry.leader_epoch_max} by now."
    return ApiError(ErrorCode.fenced_leader_epoch, message)


def _fenced_state_epoch(entry: _Entry) -> ApiError:
    message = f"The share-partition's state was begun anew, in epoch {entry.state_epoch_max}."
    return ApiError(ErrorCode.fenced_state_epoch, message)


def _rewritten_cold(state: SharePartitionState, wall_ms: int) -> SharePartitionState:
    return replace(state, snapshot_epoch=state.snapshot_epoch + 1, write_timestamp_ms=wall_ms)


def _some_at_a_time(records: Iterable[ShareStateRecord]) -> Iterator[Sequence[ShareStateRecord]]:
    iterator = iter(records)
    while some := list(islice(iterator, _RECORDS_PER_BATCH)):
        yield some
