"""Look-ups in the share indexes of all segments of a log: newest records of groups, runs of control offsets.

An index identifies a group by a hash, which several groups may share; the record of a checkpoint names its
group. Indexes of old segments are read for one use and not kept, because mostly the newest ones are needed
again. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from barnabas.protocol.control_record import ControlType, ShareCheckpoint, ShareDelta
from barnabas.protocol.varint import NewerVersion, RecordFormatError
from barnabas.storage.errors import ShareStateLost, StorageError
from barnabas.storage.format.control_runs import ControlRuns, Run
from barnabas.storage.format.share_index import ShareIndexEntry, group_hash
from barnabas.storage.reading.verification import Verification
from barnabas.storage.segments.segment import Segment
from barnabas.storage.segments.segments import Segments
from barnabas.storage.share.share_state import decode_share_record, read_group_id

_REMEDY = (
    "the share group of this control record stops on this partition. To begin its state anew, reset or "
    "delete the group's offsets (kafka-share-groups.sh). To go back to the state before, stop the broker and "
    "run `barnabas log drop-damaged` on the partition's directory"
)


def newest_entries(segments: Segments, hashed: int, down_to_offset: int = 0) -> Iterator[ShareIndexEntry]:
    """The entries of the groups with this hash, and of unreadable state, the newest first; OSError.

    Ends with the segment that holds the offset, so there may be entries below it.
    """
    for segment in reversed(segments):
        yield from segment.share_index.peek().newest_first_or_unknown(hashed)
        if segment.base_offset <= down_to_offset:
            return


def newest_checkpoints(
    segments: Iterable[Segment], unreadable: list[int] | None = None
) -> dict[str, ShareIndexEntry]:
    """Each group's newest checkpoint or tombstone, by group id; `segments` must come from the newest down.

    Raises OSError, NewerVersion, and RecordFormatError for a record that names no group. With `unreadable`
    the offset of such a record is added to that list instead. IndexDamaged if an index of unknown origin does
    not match the log.
    """
    newest: dict[str, ShareIndexEntry] = {}
    for segment in segments:
        for entry in segment.share_index.peek().checkpoints_newest_first():
            try:
                group_id = _group_id(segment, entry)
            except RecordFormatError as error:
                if unreadable is None or isinstance(error, NewerVersion):
                    raise
                unreadable.append(entry.offset)
            else:
                newest.setdefault(group_id, entry)
    return newest


def read_share_record(
    segment: Segment, entry: ShareIndexEntry, verification: Verification
) -> tuple[int, ShareCheckpoint | ShareDelta]:
    """(offset, record) of an entry of the segment; the record names its group.

    Raises OSError; ShareStateLost if the bytes are damaged, which is logged and counted; and StorageError if
    a newer broker has written them.
    """
    batch = _read(segment, entry)
    try:
        offset, record = decode_share_record(batch)
        if offset != entry.offset:
            raise RecordFormatError(f"It states the offset {offset}.")
    except NewerVersion as error:
        raise StorageError(f"{segment.log_path}, offset {entry.offset}: {error}") from error
    except RecordFormatError as error:
        _doubt(segment, entry)
        damage = verification.corrupt(segment, entry.position, str(error).rstrip("."), _REMEDY)
        raise ShareStateLost(f"The share state at offset {entry.offset} is lost. {damage}") from error
    return offset, record


def is_checkpoint_of(segment: Segment, offset: int, group_id: str) -> bool:
    """Whether a live checkpoint of the group is at this offset. Raises OSError, RecordFormatError.

    The index stays in memory for the next group.
    """
    entry = segment.share_index.get().find(offset)
    return (
        entry is not None
        and entry.kind == ControlType.SHARE_CHECKPOINT
        and not entry.tombstone
        and entry.group_hash == group_hash(group_id)
        and _group_id(segment, entry) == group_id
    )


def holds_share_state_below(segments: Segments, offset: int) -> bool:
    """Whether segments that begin below `offset` have entries in their share indexes."""
    return any(segment.share_index.size_bytes for segment in segments if segment.base_offset < offset)


def load_control_runs(segments: Segments, loaded_from: int) -> ControlRuns:
    """The runs of control offsets; those of segments below `loaded_from` are loaded on demand. OSError."""
    indexed = [
        segment
        for segment in segments
        if segment.base_offset < loaded_from and segment.share_index.size_bytes
    ]
    following = segments.after(indexed[-1]) if indexed else None
    known_from = 0 if following is None else following.base_offset
    runs = ControlRuns(known_from=known_from, older=partial(_older_runs, segments))
    for segment in segments.from_offset(known_from):
        following = segments.after(segment)
        for base_offset, last_offset in _runs_of(segment):
            if following is not None and last_offset >= following.base_offset:
                raise segment.share_index.damage("the index reaches into the next segment")
            runs.append(base_offset, last_offset)
    return runs


def _older_runs(segments: Segments, below: int) -> tuple[int, list[Run]] | None:
    """The runs below `below` in the segment before that offset, and its base offset. Raises OSError."""
    if below <= segments.first.base_offset:
        return None
    segment = segments.floor(below - 1)
    runs = _runs_of(segment)
    return segment.base_offset, [(first, min(last, below - 1)) for first, last in runs if first < below]


def _runs_of(segment: Segment) -> Iterator[Run]:
    """The runs in one segment. Raises OSError, IndexDamaged."""
    index = segment.share_index.peek()
    if not index.is_ascending():
        raise segment.share_index.damage("the entries of the index do not ascend")
    return index.runs()


def _group_id(segment: Segment, entry: ShareIndexEntry) -> str:
    batch = _read(segment, entry)
    try:
        return read_group_id(batch)
    except RecordFormatError as error:
        if not isinstance(error, NewerVersion):
            _doubt(segment, entry)
        raise


def _read(segment: Segment, entry: ShareIndexEntry) -> bytes:
    if entry.position + entry.length_bytes > segment.size_bytes:
        _doubt(segment, entry)
    return segment.read(entry.position, entry.length_bytes)


def _doubt(segment: Segment, entry: ShareIndexEntry) -> None:
    """The entry does not match the log: raises IndexDamaged, unless the index is certainly right."""
    if segment.share_index.checksum is None:
        raise segment.share_index.damage(f"the entry for offset {entry.offset} does not match the log")
