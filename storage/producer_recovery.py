"""Learning what idempotent producers wrote to a log that is opened: from a snapshot and what follows it."""

from __future__ import annotations

from barnabas.protocol.record_batch import BatchHeader
from barnabas.storage.format.producer_snapshot import SnapshotCorrupt, decode_snapshot
from barnabas.storage.log_state import LogState
from barnabas.storage.producer_state import ProducerState
from barnabas.storage.segment_recovery import NEVER_CHECKED, Tail
from barnabas.storage.segment_scan import scan_segment


async def load_producers(state: LogState, snapshots: list[int], tail: Tail, now_ms: int) -> None:
    """The newest snapshot that can be read, and the batches behind it.

    Without any the producers' batches are all in the tail: a recovery point moves on only once a snapshot is
    durable of whatever producers there are.
    """
    was_damaged = False
    while snapshots:
        path = state.snapshot_path(snapshots[-1])
        try:
            if snapshots[-1] <= state.log_end_offset:
                entries = decode_snapshot(await state.filesystem.read_whole(path))
                state.producers = ProducerState.from_snapshot(entries)
                break
        except SnapshotCorrupt:
            was_damaged = True  # an older one, with more of the log behind it, serves as well
        await state.filesystem.run(state.filesystem.remove, path)
        snapshots.pop()
    state.snapshot_offsets = snapshots
    taken_until = snapshots[-1] if snapshots else 0
    if was_damaged or (snapshots and taken_until < tail.scanned_from):
        headers = await state.filesystem.run(_produced_between, state, taken_until, tail.scanned_from)
        tail.produced[:0] = headers
    for header in tail.produced:
        if header.base_offset >= taken_until:
            state.producers.replay(header)
    state.producers.expire(now_ms, state.storage.producer_id_expiration_ms)


def _produced_between(state: LogState, offset: int, end_offset: int) -> list[BatchHeader]:
    """The headers of what idempotent producers wrote from `offset` on and below `end_offset`."""
    return [
        batch.header
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
