"""`barnabas log drop-damaged`: removes damaged data from a partition with the state of a coordinator.

A coordinator loads its whole log, so one damaged batch prevents the start of the whole partition; after the
removal only that batch is lost. Removed bytes are kept in a file beside the segment. The indexes are deleted,
and the next start makes them again. From a partition with records of clients only share state is removed,
because consumers decide which records to skip. The metadata log is refused, because metadata with a gap is
useless.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from barnabas.cli.log_tool.files import UnreadableError, opened, read_if_there
from barnabas.cli.log_tool.places import PartitionFiles, Place, SegmentFiles, single_partition
from barnabas.cli.log_tool.segments import read_indexes, scan
from barnabas.cli.log_tool.share_state_dropping import ShareStateDropping
from barnabas.cli.printing import Printer
from barnabas.coordinator.metadata.topic_names import METADATA_TOPIC, is_internal
from barnabas.storage.directory.log_directory import LOCK_FILE
from barnabas.storage.filesystem import FileSystem, replace_whole
from barnabas.storage.segments.damage import Damage
from barnabas.storage.segments.segment import TRANSACTION_INDEX_SUFFIX

_KEPT_SUFFIX = ".damaged-"
"""The suffix of the file with the removed bytes. Their position in the segment follows it, and a number if an
earlier run kept other bytes from there.
"""


class _Damaged(NamedTuple):
    """Damaged bytes of a segment, and the offsets that they may have contained."""

    damage: Damage
    content: bytes
    lost_from: int
    lost_to: int | None
    """The first good offset after them; None at the end of the log, where it is unknown."""


_SortOut = Callable[[SegmentFiles, int | None], tuple[bytes, Sequence[_Damaged]] | None]
"""For a segment and its exclusive end offset: the content to keep, and the parts to remove; None to leave the
segment unchanged.
"""


def drop_damaged(place: Place, printer: Printer, filesystem: FileSystem) -> None:
    """Removes the damaged bytes from each segment, durably, and prints them. After a crash it can run again.

    Raises UnreadableError for a partition that cannot be repaired, DirectoryLocked, OSError.
    """
    partition = _state_partition(place)
    lock = filesystem.lock(str(partition.path.parent / LOCK_FILE))
    try:
        sort_out = _sorted_out if is_internal(partition.topic) else _without_share_state()
        dropped_count = sum(
            _mend(partition, segment, sort_out, printer, filesystem) for segment in partition.segments
        )
        filesystem.sync_directory(str(partition.path))
    finally:
        lock.release()
    if not printer.as_json:
        nothing = "nothing is damaged" if is_internal(partition.topic) else "no share state is damaged"
        outcome = f"{dropped_count} dropped" if dropped_count else nothing
        printer.text(f"{partition.path.name}: {outcome}; the next start makes its indexes again")


def _state_partition(place: Place) -> PartitionFiles:
    partition = single_partition(place)
    if partition.topic == METADATA_TOPIC:
        raise UnreadableError(f"{partition.path} is the metadata log, from which nothing can be removed.")
    return partition


def _without_share_state() -> _SortOut:
    dropping = ShareStateDropping()

    def sort_out(segment: SegmentFiles, end_offset: int | None) -> tuple[bytes, Sequence[_Damaged]] | None:
        found = dropping.sorted_out(segment, end_offset)
        if found is None:
            return None
        left, dropped = found
        return left, [
            _Damaged(state.damage, state.content, state.first_offset, state.last_offset + 1)
            for state in dropped
        ]

    return sort_out


def _mend(
    partition: PartitionFiles,
    segment: SegmentFiles,
    sort_out: _SortOut,
    printer: Printer,
    filesystem: FileSystem,
) -> int:
    """Repair a segment; returns the number of damaged ranges. The indexes are deleted after the segment is
    written, because they are needed to find good batches after damage.
    """
    sorted_out = sort_out(segment, partition.end_offset(segment))
    if sorted_out is None:
        return 0
    good, damaged = sorted_out
    for damaged_range in damaged:
        kept = _kept_path(segment, damaged_range)
        replace_whole(filesystem, str(kept), damaged_range.content)
        _tell(partition, segment, damaged_range, kept, printer)
    if damaged:
        replace_whole(filesystem, str(segment.log_path), good)
    for path in segment.index_paths:
        if path.suffix != TRANSACTION_INDEX_SUFFIX:
            path.unlink(missing_ok=True)
    return len(damaged)


def _kept_path(segment: SegmentFiles, damaged_range: _Damaged) -> Path:
    """The file for the removed bytes. It never replaces other bytes of an earlier run, because positions
    change with each run. After a crash the bytes are the same, and so is the file.
    """
    first = segment.log_path.with_name(
        f"{segment.log_path.name}{_KEPT_SUFFIX}{damaged_range.damage.position}"
    )
    path, number = first, 1
    while read_if_there(path) not in (None, damaged_range.content):
        number += 1
        path = first.with_name(f"{first.name}-{number}")
    return path


def _sorted_out(segment: SegmentFiles, end_offset: int | None) -> tuple[bytes, Sequence[_Damaged]]:
    """The good batches, and the damaged ranges. A batch that reaches beyond `end_offset`, the base offset of
    the next segment, is damaged, as for every reader of the log.
    """
    good = bytearray()
    damaged: list[_Damaged] = []
    is_behind_damage = False
    next_offset = segment.base_offset
    with opened(segment.log_path) as file:
        for scanned in scan(segment, file, read_indexes(segment), end_offset=end_offset):
            if isinstance(scanned, Damage):
                content = file.read(scanned.position, scanned.end - scanned.position)
                damaged.append(_Damaged(scanned, content, next_offset, end_offset))
                is_behind_damage = True
                continue
            if is_behind_damage:
                damaged[-1] = damaged[-1]._replace(lost_to=scanned.header.base_offset)
                is_behind_damage = False
            good += scanned.data
            next_offset = scanned.header.last_offset + 1
    return bytes(good), damaged


def _tell(
    partition: PartitionFiles, segment: SegmentFiles, damaged_range: _Damaged, kept: Path, printer: Printer
) -> None:
    damage, _, lost_from, lost_to = damaged_range
    file = partition.named(segment.log_path.name)
    if printer.as_json:
        printer.row(
            {
                "type": "dropped",
                "file": file,
                "position": damage.position,
                "size_bytes": damage.end - damage.position,
                "from_offset": lost_from,
                "to_offset": lost_to,
                "reason": damage.reason,
                "kept": str(kept),
            }
        )
        return
    if lost_to is None:
        offsets = f"offsets from {lost_from} on"
    else:
        offsets = f"offsets {lost_from} to {lost_to - 1}" if lost_from < lost_to else "no offsets"
    printer.text(
        f"{file}, position {damage.position}, {offsets}: {damage.end - damage.position} bytes dropped: "
        f"{damage.reason}; they are in {kept.name}"
    )
