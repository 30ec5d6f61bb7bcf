"""Restores the state of idempotent producers when a log is opened: from a snapshot and the batches behind it.

This also finds the open transactions, and the aborted transactions behind the snapshot, which the segments'
indexes may lack (`transaction_recovery`). If durable data is damaged or lost and no snapshot is usable, the
whole log is read, as in Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from barnabas.runtime.logging import get_logger
from barnabas.runtime.moment import Moment
from barnabas.storage.format.producer_snapshot import ProducerSnapshotEntry
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


def load_producers(state: LogState, tail: Tail, *, durable_until: int) -> Replayed:
    """Replays the newest usable snapshot and the batches behind it. For a thread; OSError, RecordFormatError.

    The caller must call `settle_snapshots` later. `durable_until` is the stored recovery point; it is beyond
    the log's end if the end was lost. Without any snapshot all batches of producers are in the tail, because
    a recovery point moves only when a snapshot of the existing producers is durable. This conclusion is wrong
    if a snapshot is damaged or beyond the log's end, or if that end was lost; then the whole log is replayed.
    """
    replay_from = read_from = tail.scanned_from if tail.read_from is None else tail.read_from
    entries: list[ProducerSnapshotEntry] = []
    found = state.producer_snapshots.find_newest(state.log_end_offset)
    is_empty = state.log_end_offset == state.segments.first.base_offset
    is_anything_lost = bool(state.producer_snapshots.useless) or durable_until > state.log_end_offset
    is_rebuilt = found is None and is_anything_lost and not is_empty
    if is_rebuilt:
        replay_from = state.segments.first.base_offset
        logger.warning(
            "no producer snapshot is usable; producers are rebuilt from the whole log",
            log=state.topic_partition.directory_name,
        )
    elif found is not None:
        replay_from, entries = found
    state.producers = ProducerState.from_snapshot(_still_open(state, replay_from, entries))
    produced = chain(produced_between(state, replay_from, read_from), _produced_in(state, tail, replay_from))
    return Replayed(replay_from, replay_produced(state.producers, produced, replay_from), is_rebuilt)


def settle_snapshots(state: LogState, replayed: Replayed, moment: Moment) -> None:
    """Writes a snapshot of a replay of the whole log, removes useless snapshots, and expires idle producers.

    To be called when the replayed aborts are in the transaction indexes. For a thread; raises OSError. The
    snapshot comes first: after a crash in between, the absence of all would hide that the log must be read.
    """
    if replayed.is_whole_log:
        state.producer_snapshots.add(state.log_end_offset, state.producers)
    state.producer_snapshots.remove_useless()
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
