"""Learning what idempotent producers wrote to a log that is opened: from a snapshot and what follows it.

With that come the transactions that are open, and what was aborted behind the snapshot, of which the indexes
of the segments may not have heard (`transaction_recovery`). Where what was durable is damaged or lost, and no
snapshot is left to begin from, the whole log is read, as Apache Kafka does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from barnabas.runtime.logging import get_logger
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
    """What was read of the log, and what that makes of the files beside it."""

    replayed_from: int
    aborted: list[AbortedTransaction]
    """The transactions whose abort markers were replayed: all from that offset on."""
    is_whole_log: bool
    """Whether nothing that was durable is taken on trust: the indexes are to name them all."""
    useless_snapshots: list[int]
    """Those that can't be what belongs to this log."""


class _Snapshots(NamedTuple):
    """What the snapshot files have come to: the offset of the one to begin from, if any, what it holds, and
    the files that can't be what belongs to this log.
    """

    taken_until: int | None
    entries: list[ProducerSnapshotEntry]
    useless: list[int]


def load_producers(state: LogState, snapshots: list[int], tail: Tail, *, durable_until: int) -> Replayed:
    """The newest snapshot that can be read, and the batches behind it. For a thread; OSError,
    RecordFormatError. `settle_snapshots` is to follow.

    `durable_until` is the recovery point as it was written down, beyond the log's end if that was lost.
    Without any snapshot the producers' batches are all in the tail: a recovery point moves on only once a
    snapshot is durable of whatever producers there are. That holds no more once one of them is damaged, or
    goes beyond what is left of the log.
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


def settle_snapshots(state: LogState, replayed: Replayed, *, now_ms: int) -> None:
    """Once what the replay told is in the transaction indexes: has the snapshots stand for what was read, and
    forgets producers that were idle for too long. For a thread; raises OSError.
    """
    if replayed.is_whole_log:
        _write_snapshot(state)
    _remove_snapshots(state, replayed.useless_snapshots)
    state.producers.expire(now_ms, state.storage.producer_id_expiration_ms)


def replay_produced(
    producers: ProducerState, produced: Iterable[Produced], from_offset: int
) -> list[AbortedTransaction]:
    """Takes in what begins at or above `from_offset`; what of it was aborted."""
    replayed = (producers.replay(*one) for one in produced if one.header.base_offset >= from_offset)
    return [aborted for aborted in replayed if aborted is not None]


def _produced_in(state: LogState, tail: Tail, offset: int) -> Iterator[Produced]:
    """What idempotent producers wrote to the tail; of what it doesn't keep, from `offset` on."""
    yield from tail.produced
    if tail.produced_until is not None:
        yield from produced_between(state, max(offset, tail.produced_until), state.log_end_offset)


def produced_between(state: LogState, offset: int, end_offset: int) -> Iterator[Produced]:
    """What idempotent producers wrote from `offset` on and below `end_offset`, past bad batches, which reads
    tell of. For a thread; OSError, RecordFormatError.
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
    """Those from some way before `offset` on."""
    index = segment.offset_index.peek()
    for one in scan_past_damage(
        segment.file,
        index.floor_position(offset),
        segment.size_bytes,
        offsets=segment.offsets,
        boundaries=index.positions_behind,
    ):
        if isinstance(one, ScannedBatch):
            yield one


def _find_snapshot(state: LogState, snapshots: Sequence[int]) -> _Snapshots:
    """The newest that can be read and doesn't go beyond the log's end."""
    useless: list[int] = []
    for offset in reversed(snapshots):
        if offset <= state.log_end_offset:
            try:
                entries = decode_snapshot(read_whole(state.filesystem, state.snapshot_path(offset)))
            except SnapshotCorrupt:
                pass  # an older one, with more of the log behind it, serves as well
            else:
                return _Snapshots(offset, _still_open(state, offset, entries), useless)
        useless.append(offset)
    return _Snapshots(None, [], useless)


def _still_open(
    state: LogState, offset: int, entries: list[ProducerSnapshotEntry]
) -> list[ProducerSnapshotEntry]:
    """The entries; without their transactions if what followed the snapshot is no longer all there.

    They may have ended there. What the log still holds of one that hasn't begins it again.
    """
    if offset >= state.segments.first.base_offset:
        return entries
    return [entry._replace(transaction_first_offset=_NO_TRANSACTION) for entry in entries]


def _is_anything_lost(state: LogState, found: _Snapshots, durable_until: int) -> bool:
    """Whether a log that holds anything had more than what is found: then no snapshot doesn't mean that
    there were no producers.
    """
    is_empty = state.log_end_offset == state.segments.first.base_offset
    return not is_empty and (bool(found.useless) or durable_until > state.log_end_offset)


def _write_snapshot(state: LogState) -> None:
    """Keeps what was read of the whole log, before what tells that it has to be read is removed: a crash
    may come before the next flush.
    """
    end_offset = state.log_end_offset
    data = encode_snapshot(state.producers.to_snapshot())
    replace_whole(state.filesystem, state.snapshot_path(end_offset), data)
    state.snapshot_offsets.append(end_offset)


def _remove_snapshots(state: LogState, useless: Collection[int]) -> None:
    """Durably: one that came back could be taken for one of what is written from here on."""
    removed = [offset for offset in useless if offset not in state.snapshot_offsets]
    for offset in removed:
        state.filesystem.remove(state.snapshot_path(offset))
    if removed:
        state.filesystem.sync_directory(state.directory)
