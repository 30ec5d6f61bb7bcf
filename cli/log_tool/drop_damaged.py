"""`barnabas log drop-damaged`: takes what is damaged out of a partition with the state of a coordinator.

A coordinator begins from the whole of its log, so one bad batch keeps all of it from being loaded; without
the batch only that is lost. What is taken out is kept beside the segment. The indexes go, too, for the next
start to make them again. Of a partition with records of clients only share state is taken out: to pass over
records is for their consumers to decide. The metadata is refused: no part of it stands for the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from barnabas.cli.log_tool.files import UnreadableError, opened, read_if_there
from barnabas.cli.log_tool.places import PartitionFiles, Place, SegmentFiles
from barnabas.cli.log_tool.printing import Printer
from barnabas.cli.log_tool.segments import read_indexes, scan
from barnabas.cli.log_tool.share_state_dropping import ShareStateDropping
from barnabas.coordinator.metadata.topic_names import METADATA_TOPIC, is_internal
from barnabas.storage.directory.log_directory import LOCK_FILE
from barnabas.storage.filesystem import FileSystem, replace_whole
from barnabas.storage.segments.damage import Damage
from barnabas.storage.segments.segment import TRANSACTION_INDEX_SUFFIX

_KEPT_SUFFIX = ".damaged-"
"""With the position behind it: what was at that position of the segment; and a number, if an earlier run has
kept something else from there.
"""


class _Damaged(NamedTuple):
    """Damaged bytes of a segment, and which offsets they may have held."""

    damage: Damage
    content: bytes
    lost_from: int
    lost_to: int | None
    """The first offset behind them that is good; None at the end of the log, which nothing tells."""


_SortOut = Callable[[SegmentFiles, int | None], tuple[bytes, Sequence[_Damaged]] | None]
"""Tells of a segment, which ends before an offset, what stays and what goes; None to leave it alone."""


def drop_damaged(place: Place, printer: Printer, filesystem: FileSystem) -> None:
    """Takes the damaged bytes out of each segment, durably, and prints what they were; what a crash leaves of
    that can be given to it again. UnreadableError for any other partition, DirectoryLocked, OSError.
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
    if place.data_directory is not None or not place.partitions[0].names:
        raise UnreadableError("Name the directory of one partition.")
    partition = place.partitions[0]
    if partition.topic == METADATA_TOPIC:
        raise UnreadableError(f"{partition.path} holds the metadata: nothing is taken out of it.")
    return partition


def _without_share_state() -> _SortOut:
    dropping = ShareStateDropping()

    def sort_out(segment: SegmentFiles, end_offset: int | None) -> tuple[bytes, Sequence[_Damaged]] | None:
        found = dropping.sorted_out(segment, end_offset)
        if found is None:
            return None
        left, dropped = found
        return left, [
            _Damaged(one.damage, one.content, one.first_offset, one.last_offset + 1) for one in dropped
        ]

    return sort_out


def _mend(
    partition: PartitionFiles,
    segment: SegmentFiles,
    sort_out: _SortOut,
    printer: Printer,
    filesystem: FileSystem,
) -> int:
    """How many damaged ranges there were. The segment goes first: without the indexes nobody would find where
    it is good again.
    """
    sorted_out = sort_out(segment, partition.end_offset(segment))
    if sorted_out is None:
        return 0
    good, damaged = sorted_out
    for one in damaged:
        kept = _kept_path(segment, one)
        replace_whole(filesystem, str(kept), one.content)
        _tell(partition, segment, one, kept, printer)
    if damaged:
        replace_whole(filesystem, str(segment.log_path), good)
    for path in segment.index_paths:
        if path.suffix != TRANSACTION_INDEX_SUFFIX:
            path.unlink(missing_ok=True)
    return len(damaged)


def _kept_path(segment: SegmentFiles, one: _Damaged) -> Path:
    """Where the bytes are kept. What an earlier run has kept from there stays: positions move with
    each run. After one that a crash cut short the bytes are the same, and so is their place.
    """
    first = segment.log_path.with_name(f"{segment.log_path.name}{_KEPT_SUFFIX}{one.damage.position}")
    path, number = first, 1
    while read_if_there(path) not in (None, one.content):
        number += 1
        path = first.with_name(f"{first.name}-{number}")
    return path


def _sorted_out(segment: SegmentFiles, end_offset: int | None) -> tuple[bytes, Sequence[_Damaged]]:
    """The good batches, and what isn't. As to a reader of the log, a batch is damaged that reaches beyond
    `end_offset`, where the next segment begins.
    """
    good = bytearray()
    damaged: list[_Damaged] = []
    is_behind_damage = False
    next_offset = segment.base_offset
    with opened(segment.log_path) as file:
        for one in scan(segment, file, read_indexes(segment), end_offset=end_offset):
            if isinstance(one, Damage):
                content = file.read(one.position, one.end - one.position)
                damaged.append(_Damaged(one, content, next_offset, end_offset))
                is_behind_damage = True
                continue
            if is_behind_damage:
                damaged[-1] = damaged[-1]._replace(lost_to=one.header.base_offset)
                is_behind_damage = False
            good += one.data
            next_offset = one.header.last_offset + 1
    return bytes(good), damaged


def _tell(
    partition: PartitionFiles, segment: SegmentFiles, one: _Damaged, kept: Path, printer: Printer
) -> None:
    damage, _, lost_from, lost_to = one
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
