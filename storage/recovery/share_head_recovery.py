"""Finds the heads of share groups when a log is opened, and proves them before anything is removed by them.

The share snapshot beside the segments lists each group's head (KIP-932's sketch, "Recovery and log
cleaning"). It is used if it can be true: it is undamaged, it belongs to this log, and each listed offset has
a checkpoint of the listed group. Heads behind the snapshot's end, and in the log's last segments, come from
their share indexes. Without a usable snapshot all heads come from the share indexes, from the newest segment
down.

An undamaged snapshot may still be wrong: a head may be outdated, or a group missing. Only the share indexes
of all segments show that. An open log reads them once, in threads, before it removes or cleans segments.
Until then no group's state is found, or considered missing, by the heads alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.protocol.varint import RecordFormatError
from barnabas.runtime.logging import get_logger
from barnabas.storage.errors import IndexDamaged
from barnabas.storage.format.leader_epochs import LeaderEpochs
from barnabas.storage.format.share_index import ShareIndexEntry
from barnabas.storage.format.share_snapshot import (
    FILE_NAME,
    ShareSnapshot,
    ShareSnapshotCorrupt,
    decode_share_snapshot,
    encode_share_snapshot,
)
from barnabas.storage.reading.share_lookup import (
    holds_share_state_below,
    is_checkpoint_of,
    newest_checkpoints,
)
from barnabas.storage.recovery.hint_files import write_hint
from barnabas.storage.segments.segment import kept_open
from barnabas.storage.segments.segments import Segments
from barnabas.storage.share.share_heads import ShareHeads
from barnabas.storage.state.log_files import LogPlace, read_file
from barnabas.storage.state.log_state import LogState

logger = get_logger("recovery")


class _NotBelieved(Exception):  # noqa: N818  named as the condition
    """The reason why the share snapshot is not used."""


def load_share_heads(
    place: LogPlace, segments: Segments, epochs: LeaderEpochs, *, log_end_offset: int, scanned_from: int
) -> ShareHeads:
    """The heads of a log whose segments from `scanned_from` on were scanned. For a thread; raises OSError."""
    data = read_file(place.filesystem, f"{place.directory}/{FILE_NAME}")
    try:
        snapshot = _decode(data, epochs, log_end_offset)
        return _heads_behind(segments, snapshot.checkpoint_offsets, min(snapshot.end_offset, scanned_from))
    except _NotBelieved as reason:
        heads = _rebuild(segments)
        heads.changed = data is not None or bool(heads.live())
        if heads.changed and not place.shared.full_disk.is_full:
            name = place.topic_partition.directory_name
            # A log that was not closed cleanly has no snapshot yet; a wrong one is worth a warning.
            write = logger.info if data is None else logger.warning
            write("the heads of share groups are read from the log", log=name, reason=str(reason))
        return heads


def _decode(data: bytes | None, epochs: LeaderEpochs, log_end_offset: int) -> ShareSnapshot:
    """The snapshot, if it can belong to this log; raises _NotBelieved."""
    if data is None:
        raise _NotBelieved("there is no share snapshot")
    try:
        snapshot = decode_share_snapshot(data)
    except ShareSnapshotCorrupt as error:
        raise _NotBelieved(f"the share snapshot is damaged, {error}") from error
    end_offset = snapshot.end_offset
    if not 0 <= end_offset <= log_end_offset:
        raise _NotBelieved(f"the share snapshot goes up to {end_offset}, and the log to {log_end_offset}")
    if epochs.epoch_at(end_offset - 1) != snapshot.leader_epoch:
        raise _NotBelieved(f"the share snapshot is of another history, which had a batch at {end_offset - 1}")
    return snapshot


def _heads_behind(segments: Segments, hinted: Mapping[str, int], end_offset: int) -> ShareHeads:
    """The hinted heads, and those of the share indexes from the segment with `end_offset` on."""
    start_offset = segments.floor(end_offset).base_offset
    unreadable: list[int] = []
    newest = newest_checkpoints(reversed(segments.from_offset(start_offset)), unreadable)
    kept = {group_id: offset for group_id, offset in hinted.items() if group_id not in newest}
    for group_id, offset in kept.items():
        if not _is_head(segments, start_offset, offset, group_id):
            raise _NotBelieved(f"the share snapshot names a checkpoint of group {group_id!r} at {offset}")
    is_hint = holds_share_state_below(segments, start_offset)
    hinted_below = max(start_offset if is_hint else 0, _end_of(unreadable))
    return _noted(ShareHeads(kept, hinted_below=hinted_below), newest)


def _is_head(segments: Segments, end_offset: int, offset: int, group_id: str) -> bool:
    try:
        return 0 <= offset < end_offset and is_checkpoint_of(segments.floor(offset), offset, group_id)
    except RecordFormatError:
        return False


def _rebuild(segments: Segments) -> ShareHeads:
    """All heads by the share indexes.

    While a checkpoint cannot be read, the heads below its end stay unproven: its group is unknown, so no
    state that may belong to it is cleaned.
    """
    unreadable: list[int] = []
    newest = newest_checkpoints(reversed(segments), unreadable)
    return _noted(ShareHeads(hinted_below=_end_of(unreadable)), newest)


def _end_of(offsets: Sequence[int]) -> int:
    return max(offsets, default=-1) + 1


def _noted(heads: ShareHeads, newest: Mapping[str, ShareIndexEntry]) -> ShareHeads:
    for group_id, entry in newest.items():
        heads.note_checkpoint(group_id, entry.offset, entry.tombstone)
    heads.changed = False
    return heads


def take_share_snapshot(log: LogState) -> bytes | None:
    """The new content of the share snapshot; None if the file is up to date."""
    if not log.share_heads.changed:
        return None
    log.share_heads.changed = False
    leader_epoch = log.leader_epochs.epoch_at(log.log_end_offset - 1)
    return encode_share_snapshot(ShareSnapshot(log.log_end_offset, leader_epoch, log.share_heads.live()))


async def write_share_snapshot(log: LogState, data: bytes) -> None:
    """Replaces the file; see `write_hint`. After an error the next change of the heads is written again."""
    await write_hint(log, FILE_NAME, data, "the share snapshot was not written")


async def prove_share_heads(log: LogState) -> None:
    """Proves the hinted heads; the caller must prevent changes of the log's files meanwhile.

    Raises OSError, and RecordFormatError for a checkpoint that names no group; then nothing may be removed.
    StorageError if an index is damaged; the log is offline then.
    """
    heads = log.share_heads
    newest: dict[str, ShareIndexEntry] = {}
    hinted = [segment for segment in log.segments if segment.base_offset < heads.hinted_below]
    try:
        for segment in reversed(hinted):
            if segment.share_index.size_bytes:
                with kept_open([segment]):
                    segment.file  # noqa: B018  opened here, because the loop's thread counts open files
                    newest = await log.filesystem.run(newest_checkpoints, [segment]) | newest
    except IndexDamaged as error:
        raise log.go_offline(error) from error
    found = {group_id: entry.offset for group_id, entry in newest.items() if not entry.tombstone}
    if not heads.is_proven and not heads.prove(found):
        name = log.topic_partition.directory_name
        logger.error("the share snapshot was wrong; the heads of share groups come from the log", log=name)
