"""Restores the state of idempotent producers when a log is opened: from a snapshot and the batches behind it.

This also finds the open transactions, and the aborted transactions behind the snapshot, which the segments'
indexes may lack (`transaction_recovery`). If durable data is damaged or lost and no snapshot is usable, the
whole log is read, as in Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from barnabas.runtime.logging import get_logger
from barnabas.runtime.moment import Moment
from barnabas.storage.filesystem import read_whole, replace_whole
from barnabas.storage.format.producer_snapshot import (
    ProducerSnapshotEntry,
    SnapshotCorrupt,
    decode_snapshot,
    encode_snapshot,
)
from barnabas.storage.format.transaction_index import AbortedTransaction
from barnabas.storage.producers.producer_state import ProducerState
from barnabas.storage.recovery.segment_recovery import Produced, Tail, read_produced
from barnabas.storage.segments.damage import scan_past_damage
from barnabas.storage.segments.segment import Segment
from barnabas.storage.segments.segment_scan import ScannedBatch
from barnabas.storage.state.log_state import LogState

_NO_TRANSACTION = -1

logger = get_logger("recovery")


class Replayed(NamedTuple):
    """The part of the log that was replayed, and its consequences for the files beside the log."""

    replayed_from: int
    aborted: list[AbortedTransaction]
    """The transactions whose abort markers were replayed: all from `replayed_from` on."""
    is_whole_log: bool
    """Whether the whole log was replayed. Then the indexes must list all of `aborted`."""
    useless_snapshots: list[int]
    """The offsets of snapshots that are damaged or beyond the log's end."""


class _Snapshots(NamedTuple):
    """The usable snapshot, if any: its offset and entries; and the offsets of the useless ones."""

    taken_until: int | None
    entries: list[ProducerSnapshotEntry]
    useless: list[int]


def load_producers(state: LogState, snapshots: list[int], tail: Tail, *, durable_until: int) -> Replayed:
    """Replays the newest usable snapshot and the batches behind it. For a thread; OSError, RecordFormatError.

    The caller must call `settle_snapshots` later. `durable_until` is the stored recovery point; it is beyond
    the log's end if the end was lost. Without any snapshot all batches of producers are in the tail, because
    a recovery point moves only when a snapshot of the existing producers is durable. This conclusion is wrong
    if a snapshot is damaged or beyond the log's end; then the whole log is replayed.
    """
    found = _find_snapshot(state, snapshots)
    read_from = tail.scanned_from if tail.read_from is None else tail.read_from
    is_rebuilt = found.taken_until is None and _is_anything_lost(state, found, durable_until)
    if is_rebuilt:
        replay_from = state.segments.first.base_offset
        logger.warning(
            "no producer snapshot is usable; producers are rebuilt from the whole log",
            log=state.topic_partition.directory_name,
        )
    else:
        replay_from = read_from if found.taken_until is None else found.taken_until
    state.producers = ProducerState.from_snapshot(found.entries)
    produced = chain(produced_between(state, replay_from, read_from), _produced_in(state, tail, replay_from))
    aborted = replay_produced(state.producers, produced, replay_from)
    state.snapshot_offsets = [offset for offset in snapshots if offset not in found.useless]
    return Replayed(replay_from, aborted, is_rebuilt, found.useless)


def settle_snapshots(state: LogState, replayed: Replayed, moment: Moment) -> None:
    """Writes a snapshot of a replay of the whole log, removes useless snapshots, and expires idle producers.

    To be called when the replayed aborts are in the transaction indexes. For a thread; raises OSError.
    """
    if replayed.is_whole_log:
        _write_snapshot(state)
    _remove_snapshots(state, replayed.useless_snapshots)
    state.producers.expire_loaded(moment, state.storage.producer_id_expiration_ms)


def replay_produced(
    producers: ProducerState, produced: Iterable[Produced], from_offset: int
) -> list[AbortedTransaction]:
    """Replays the batches at or above `from_offset`; returns the aborted transactions."""
    replayed = (producers.replay(*batch) for batch in produced if batch.header.base_offset >= from_offset)
    return [aborted for aborted in replayed if aborted is not None]


def _produced_in(state: LogState, tail: Tail, offset: int) -> Iterator[Produced]:
    """The batches of idempotent producers in the tail, read again from the log if the tail did not keep them.

    Batches below `offset` are not read again.
    """
    yield from tail.produced
    if tail.produced_until is not None:
        yield from produced_between(state, max(offset, tail.produced_until), state.log_end_offset)


def produced_between(state: LogState, offset: int, end_offset: int) -> Iterator[Produced]:
    """The batches of idempotent producers in [offset, end_offset). For a thread; OSError, RecordFormatError.

    Damaged batches are skipped; reads report them.
    """
    if offset >= end_offset:
        return
    for segment in state.segments.from_offset(offset):
        for batch in _good_batches(segment, offset):
            if batch.header.base_offset >= end_offset:
                return
            if batch.header.producer_id >= 0 and batch.header.base_offset >= offset:
                yield read_produced(batch)


def _good_batches(segment: Segment, offset: int) -> Iterator[ScannedBatch]:
    """The good batches of the segment, from one at or before `offset` on."""
    index = segment.offset_index.peek()
    for scanned in scan_past_damage(
        segment.file,
        index.floor_position(offset),
        segment.size_bytes,
        offsets=segment.offsets,
        boundaries=index.positions_behind,
    ):
        if isinstance(scanned, ScannedBatch):
            yield scanned


def _find_snapshot(state: LogState, snapshots: Sequence[int]) -> _Snapshots:
    """The newest snapshot that can be read and is not beyond the log's end."""
    useless: list[int] = []
    for offset in reversed(snapshots):
        if offset <= state.log_end_offset:
            try:
                entries = decode_snapshot(read_whole(state.filesystem, state.snapshot_path(offset)))
            except SnapshotCorrupt:
                pass  # an older one serves as well; more of the log is replayed then
            else:
                return _Snapshots(offset, _still_open(state, offset, entries), useless)
        useless.append(offset)
    return _Snapshots(None, [], useless)


def _still_open(
    state: LogState, offset: int, entries: list[ProducerSnapshotEntry]
) -> list[ProducerSnapshotEntry]:
    """The entries, without their open transactions if segments behind the snapshot are gone.

    The transactions may have ended in those segments. The remaining batches of one that has not begin it
    again.
    """
    if offset >= state.segments.first.base_offset:
        return entries
    return [entry._replace(transaction_first_offset=_NO_TRANSACTION) for entry in entries]


def _is_anything_lost(state: LogState, found: _Snapshots, durable_until: int) -> bool:
    """Whether a log with batches has lost snapshots or durable batches.

    Then a missing snapshot does not mean that there were no producers.
    """
    is_empty = state.log_end_offset == state.segments.first.base_offset
    return not is_empty and (bool(found.useless) or durable_until > state.log_end_offset)


def _write_snapshot(state: LogState) -> None:
    """Writes a snapshot of the whole log's replay before the useless snapshots are removed.

    After a crash before the next flush their absence would hide that the whole log must be replayed.
    """
    end_offset = state.log_end_offset
    data = encode_snapshot(state.producers.to_snapshot())
    replace_whole(state.filesystem, state.snapshot_path(end_offset), data)
    state.snapshot_offsets.append(end_offset)


def _remove_snapshots(state: LogState, useless: Collection[int]) -> None:
    """Removes snapshots durably: one that came back could count for records that are written from now on."""
    removed = [offset for offset in useless if offset not in state.snapshot_offsets]
    for offset in removed:
        state.filesystem.remove(state.snapshot_path(offset))
    if removed:
        state.filesystem.sync_directory(state.directory)
