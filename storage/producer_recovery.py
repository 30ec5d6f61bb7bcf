"""Learning what idempotent producers wrote to a log that is opened: from a snapshot and what follows it.

With that come the transactions that are open, and what was aborted behind the snapshot, of which the indexes
of the segments may not have heard (`transaction_recovery`).
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.storage.filesystem import read_whole
from barnabas.storage.format.producer_snapshot import SnapshotCorrupt, decode_snapshot
from barnabas.storage.format.transaction_index import AbortedTransaction
from barnabas.storage.log_state import LogState
from barnabas.storage.producer_state import ProducerState
from barnabas.storage.segment_recovery import NEVER_CHECKED, Produced, Tail, read_produced
from barnabas.storage.segment_scan import scan_segment


class ReplayedTransactions(NamedTuple):
    """The transactions whose abort markers were replayed: all from the offset `replayed_from` on."""

    replayed_from: int
    aborted: list[AbortedTransaction]


def load_producers(state: LogState, snapshots: list[int], tail: Tail, now_ms: int) -> ReplayedTransactions:
    """The newest snapshot that can be read, and the batches behind it. For a thread; OSError,
    RecordFormatError.

    Without any the producers' batches are all in the tail: a recovery point moves on only once a snapshot is
    durable of whatever producers there are.
    """
    was_damaged = False
    while snapshots:
        path = state.snapshot_path(snapshots[-1])
        try:
            if snapshots[-1] <= state.log_end_offset:
                entries = decode_snapshot(read_whole(state.filesystem, path))
                state.producers = ProducerState.from_snapshot(entries)
                break
        except SnapshotCorrupt:
            was_damaged = True  # an older one, with more of the log behind it, serves as well
        state.filesystem.remove(path)
        snapshots.pop()
    state.snapshot_offsets = snapshots
    taken_until = snapshots[-1] if snapshots else 0
    read_from = tail.scanned_from if tail.read_from is None else tail.read_from
    if was_damaged or (snapshots and taken_until < read_from):
        tail.produced[:0] = produced_between(state, taken_until, read_from)
    aborted = replay_produced(state.producers, tail.produced, taken_until)
    state.producers.expire(now_ms, state.storage.producer_id_expiration_ms)
    return ReplayedTransactions(taken_until, aborted)


def replay_produced(
    producers: ProducerState, produced: list[Produced], from_offset: int
) -> list[AbortedTransaction]:
    """Takes in what begins at or above `from_offset`; what of it was aborted."""
    replayed = [producers.replay(*one) for one in produced if one.header.base_offset >= from_offset]
    return [aborted for aborted in replayed if aborted is not None]


def produced_between(state: LogState, offset: int, end_offset: int) -> list[Produced]:
    """What idempotent producers wrote from `offset` on and below `end_offset`. For a thread; OSError,
    RecordFormatError.
    """
    return [
        read_produced(batch)
        for segment in state.segments.from_offset(offset)
        if segment.base_offset < end_offset
        for batch in scan_segment(
            segment.file,
            segment.offset_index.get().floor_position(offset),
            segment.size_bytes,
            offsets=segment.offsets,
            checked_from=NEVER_CHECKED,
        )
        if batch.header.producer_id >= 0 and offset <= batch.header.base_offset < end_offset
    ]
