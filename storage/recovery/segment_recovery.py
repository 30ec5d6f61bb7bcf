"""Opens the segments of a log, and repairs the last ones after a crash.

Everything below the recovery point is durable and trusted: batches are not read, and only the sizes of
indexes are checked. The log is scanned from the nearest index entry below that point. It is cut behind its
last good batch, and the indexes of this tail are rebuilt. The scan also collects leader epochs and the
batches of producers. An index that is missing, has an impossible size or is known to be damaged is
rebuilt from its segment. All functions block and are for a thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.protocol.record_batch import BatchHeader
from barnabas.protocol.transaction_marker import TransactionEnd, read_marker_batch
from barnabas.protocol.varint import NewerVersion, RecordFormatError
from barnabas.runtime.logging import get_logger
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.format import offset_index, share_index, time_index
from barnabas.storage.format.index_checksums import NOTHING_WRITTEN, SegmentChecksums
from barnabas.storage.format.offset_index import OffsetIndex
from barnabas.storage.format.share_index import ShareIndex, ShareIndexEntry
from barnabas.storage.format.time_index import TimeIndex
from barnabas.storage.segments.damage import (
    Damage,
    boundaries_of,
    end_of_whole_batches,
    may_hide_batch,
    scan_past_damage,
)
from barnabas.storage.segments.segment import LOG_SUFFIX, Segment
from barnabas.storage.segments.segment_scan import ScannedBatch, scan_segment, why_not_good
from barnabas.storage.share.share_state import may_be_share_state, read_control_batch
from barnabas.storage.state.log_files import LogPlace, offsets_of, read_file
from barnabas.storage.state.log_state import new_segment

NEVER_CHECKED = 2**63
"""A value of `checked_from`: no checksum is computed."""

PRODUCED_KEPT_MAX = 10_000
"""Batches of idempotent producers that a scan keeps, about 4 MB. Further ones are read again from the log."""

logger = get_logger("recovery")


class Produced(NamedTuple):
    """A batch of an idempotent producer; `end` is the content of a marker with a record, else None."""

    header: BatchHeader
    end: TransactionEnd | None


@dataclass(slots=True)
class Tail:
    """The findings of the scan, segment after segment."""

    next_offset: int = 0
    """The end of the last batch (exclusive)."""
    scanned_from: int = 0
    """The base offset of the first scanned segment; the scan begins at an entry of its offset index."""
    read_from: int | None = None
    """The base offset of the first scanned batch; None if there is none."""
    is_new: bool = False
    """Whether the directory had no segment."""
    begun_epochs: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """(leader epoch, offset) of each change of the epoch."""
    produced: list[Produced] = field(default_factory=list["Produced"])
    """The batches of idempotent producers and their markers, up to `produced_until`."""
    produced_until: int | None = None
    """The offset of the first such batch that was not kept; None if all were."""

    def note_produced(self, batch: ScannedBatch) -> None:
        """Keeps a batch of an idempotent producer, up to `PRODUCED_KEPT_MAX`."""
        if len(self.produced) < PRODUCED_KEPT_MAX:
            self.produced.append(read_produced(batch))
        elif self.produced_until is None:
            self.produced_until = batch.header.base_offset

    def start_over(self, offset: int) -> None:
        """Discards the findings: the log begins and ends at `offset`."""
        self.next_offset = offset
        self.produced.clear()
        self.produced_until = None
        self.begun_epochs.clear()


def load_segments(
    place: LogPlace, names: Sequence[str], checksums: Mapping[int, SegmentChecksums], now_ms: int
) -> tuple[list[Segment], Tail]:
    """Opens all segments and recovers the tail. There is at least one; the last is ready for appends.

    `checksums` are those of the index files by base offset.
    """
    base_offsets = offsets_of(names, LOG_SUFFIX) or [place.log_start_offset]
    segments = [new_segment(place, base_offset, now_ms) for base_offset in base_offsets]
    newest = max(checksums, default=base_offsets[-1])
    for segment in segments:
        # Segments behind the newest one were begun after the checksums were written.
        unknown = None if segment.base_offset < newest else NOTHING_WRITTEN
        segment.expect(checksums.get(segment.base_offset, unknown) if checksums else None)
    tail = Tail(is_new=not any(name.endswith(LOG_SUFFIX) for name in names))
    if tail.is_new:
        segments[0].create_files()
    first_scanned = _first_scanned(base_offsets, place.recovery_point)
    for segment in segments[:first_scanned]:
        _trust(place, segment)
    tail.scanned_from = base_offsets[first_scanned]
    del segments[_recover_tail(place, segments, first_scanned, tail) :]
    if tail.next_offset < place.log_start_offset:
        return [_start_over(place, segments, tail, now_ms)], tail
    segments[-1].first_timestamp_ms = _first_timestamp_ms(segments[-1])
    return segments, tail


def _recover_tail(place: LogPlace, segments: Sequence[Segment], first_scanned: int, tail: Tail) -> int:
    """Recovers the segments of the tail; returns the number of all kept segments, and removes the others.

    Segments behind a cut segment are removed. So are those behind a gap: the segment before it has lost whole
    batches. (A gap is allowed below the recovery point, and where the log was compacted.) Empty segments at
    the end are removed if the batches before them are lost, because the log continues at its present end.
    """
    kept, end_offset = first_scanned, segments[first_scanned].base_offset
    gaps_until = max(place.recovery_point, place.gaps_until)  # a gap between durable segments is intended
    for number, segment in enumerate(segments[first_scanned:], first_scanned):
        if segment.base_offset > max(end_offset, gaps_until):
            logger.warning(
                "a segment does not follow the end of the log, and is removed",
                segment=segment.log_path,
                log_end_offset=end_offset,
            )
            break
        is_whole = _recover(place, segment, tail)
        if segment.size_bytes or segment.base_offset == end_offset:
            kept, end_offset = number + 1, tail.next_offset
        if not is_whole:
            break
    tail.next_offset = end_offset
    _remove(place, segments[kept:])
    return kept


def _first_scanned(base_offsets: Sequence[int], recovery_point: int) -> int:
    """The number of the segment with the last durable offset.

    It is scanned even if the recovery point is its end: its time index may lack the entry of a roll.
    """
    return max(sum(base_offset < recovery_point for base_offset in base_offsets) - 1, 0)


def _trust(place: LogPlace, segment: Segment) -> None:
    """Opens a durable segment without reading it. If an index must be rebuilt, all are.

    Only the sizes of the indexes are checked, and the ends of the share index, so that a log opens quickly.
    """
    segment.size_bytes = place.filesystem.file_size(segment.log_path)
    if _take_over_indexes(place, segment):
        segment.timestamps_known = False
        return
    logger.warning(
        "an index is missing, impossible or damaged; all indexes of its segment are rebuilt",
        segment=segment.log_path,
    )
    _rebuild(place, segment)


def _take_over_indexes(place: LogPlace, segment: Segment) -> bool:
    """Sets the sizes of the three indexes; False if one must be rebuilt."""
    filesystem = place.filesystem
    for index in segment.batch_indexes:
        if not (filesystem.exists(index.path) and index.trust(filesystem.file_size(index.path))):
            return False
        if place.config.checks_indexes and not index.is_intact(read_file(filesystem, index.path) or b""):
            return False
    return share_index.is_sane(_ends(filesystem, segment.share_index.path, segment.share_index.size_bytes))


def _ends(filesystem: FileSystem, path: str, size_bytes: int) -> bytes:
    """The first and the last entry of a share index; all of it if there are two or fewer."""
    entry_bytes = share_index.ENTRY_BYTES
    if size_bytes <= 2 * entry_bytes:
        return read_file(filesystem, path) or b""
    with closing(filesystem.open(path, create=False)) as file:
        return file.read(0, entry_bytes) + file.read(size_bytes - entry_bytes, entry_bytes)


def _recover(place: LogPlace, segment: Segment, tail: Tail) -> bool:
    """Recovers one segment of the tail; False if it was cut, so that later segments do not count."""
    found = [read_file(place.filesystem, index.path) for index in segment.batch_indexes]
    offsets, times, shares = (
        index.known(data or b"") for index, data in zip(segment.batch_indexes, found, strict=True)
    )
    is_intact = all(
        data is None or index.is_intact(data)
        for index, data in zip(segment.batch_indexes, found, strict=True)
    )
    if not is_intact:
        logger.warning(
            "an index does not match its checksum; all indexes of its segment are rebuilt",
            segment=segment.log_path,
        )
    is_kept = (
        is_intact
        and None not in found
        and (offset_index.is_sane(offsets) and time_index.is_sane(times) and share_index.is_sane(shares))
        and _keep_indexes_below(place, segment, offsets, times, shares)
    )
    if not is_kept:
        _begin_indexes(segment)
    known = _KnownIndexes(segment.base_offset, offsets, None if found[2] is None else shares)
    is_whole = _scan(place, segment, tail, segment.offset_index.get().last_entry()[1], known)
    if not is_whole:
        _cut(place, segment, tail)
    if not is_kept:
        _write_anew(place, segment)
        return is_whole
    for index, data in zip(segment.batch_indexes, found, strict=True):
        index.settle(data or b"")
    return is_whole


def _is_batch_at(place: LogPlace, segment: Segment, position: int, last_offset: int) -> bool:
    """Whether a good batch with `last_offset` is at `position`, as an index entry claims."""
    file_bytes = place.filesystem.file_size(segment.log_path)
    scan = scan_segment(segment.file, position, file_bytes, offsets=segment.offsets, checked_from=0)
    batch = next(scan, None)
    return batch is not None and batch.header.last_offset == last_offset


def _rebuild(place: LogPlace, segment: Segment) -> None:
    """Rebuilds a durable segment's indexes and writes them, because no later flush visits the segment."""
    offsets, _, shares = (read_file(place.filesystem, index.path) for index in segment.batch_indexes)
    _begin_indexes(segment)
    _scan(place, segment, Tail(), 0, _KnownIndexes(segment.base_offset, offsets or b"", shares))
    segment.size_bytes = place.filesystem.file_size(
        segment.log_path
    )  # a torn batch at its end is damage, too
    _write_anew(place, segment)


def _write_anew(place: LogPlace, segment: Segment) -> None:
    """Writes rebuilt indexes into their files.

    The offset index is removed first and written last. While it is missing the others may be incomplete, and
    the next opening rebuilds all three.
    """
    filesystem = place.filesystem
    if filesystem.exists(segment.offset_index.path):
        filesystem.remove(segment.offset_index.path)
        filesystem.sync_directory(place.directory)
    for index in (segment.share_index, segment.time_index, segment.offset_index):
        index.settle(b"")
        if count_bytes := index.pending_bytes:
            index.write_pending(count_bytes)
            index.pending_written(count_bytes)
        index.rebuilt()
    filesystem.sync_directory(place.directory)


def _keep_indexes_below(
    place: LogPlace, segment: Segment, offsets_data: bytes, times_data: bytes, shares_data: bytes
) -> bool:
    """Keeps the indexes up to the last offset entry below the recovery point, where the scan begins.

    False if the log does not have the batch of this entry.
    """
    offsets = OffsetIndex(segment.base_offset, offsets_data)
    offsets.truncate_to(place.recovery_point)
    last_offset, position = offsets.last_entry()
    if position == 0:
        _begin_indexes(segment)
        return True
    times = TimeIndex(segment.base_offset, times_data)
    times.truncate_to(last_offset + 1)
    shares = ShareIndex(segment.base_offset, shares_data)
    shares.truncate_to_position(position)
    segment.offset_index.adopt(offsets, offsets_data[: len(offsets) * offset_index.ENTRY_BYTES])
    segment.time_index.adopt(times, times_data[: len(times) * time_index.ENTRY_BYTES])
    segment.share_index.adopt(shares, shares_data[: len(shares) * share_index.ENTRY_BYTES])
    segment.max_timestamp_ms, segment.max_timestamp_offset = times.last_entry()
    return _is_batch_at(place, segment, position, last_offset)


def _begin_indexes(segment: Segment) -> None:
    """Clears the indexes: the segment is scanned from its beginning."""
    base_offset = segment.base_offset
    segment.offset_index.begin(OffsetIndex(base_offset))
    segment.time_index.begin(TimeIndex(base_offset))
    segment.share_index.begin(ShareIndex(base_offset))
    segment.max_timestamp_ms, segment.max_timestamp_offset = time_index.NO_TIMESTAMP, base_offset


class _KnownIndexes:
    """The content of a segment's index files, for damaged parts in which no batch can be read."""

    def __init__(self, base_offset: int, offsets: bytes, shares: bytes | None) -> None:
        is_usable = shares is not None and share_index.is_sane(shares)
        self._shares = ShareIndex(base_offset, shares or b"") if is_usable else None
        self.boundaries = boundaries_of(
            OffsetIndex(base_offset, offsets), self._shares or ShareIndex(base_offset)
        )
        """The beginnings of batches that the indexes know."""

    def share_state(self, damage: Damage) -> Sequence[ShareIndexEntry]:
        """The share state in the damaged bytes; RecordFormatError without a usable share index."""
        if self._shares is None:
            raise RecordFormatError(
                f"There is damage at {damage.position}, and no share index: {damage.reason}."
            )
        return self._shares.entries_between(damage.position, damage.end)


def _scan(place: LogPlace, segment: Segment, tail: Tail, position: int, known: _KnownIndexes) -> bool:
    """Notes the batches from `position` on, up to the last good one; returns whether that ends the file.

    Behind the recovery point the first bad batch is the end of the log, unless damaged durable ones are right
    before it. Damaged batches that were durable stay. If no good batch follows them, the log continues at the
    recovery point, so that no offset of theirs is used again. A last batch whose size is damaged, too, looks
    like one that the disk has lost, and is cut.
    """
    file_bytes = place.filesystem.file_size(segment.log_path)
    segment.size_bytes = position
    tail.next_offset = max(tail.next_offset, segment.base_offset)
    for scanned in scan_past_damage(
        segment.file,
        position,
        file_bytes,
        offsets=range(tail.next_offset, segment.offsets.stop),
        boundaries=known.boundaries,
    ):
        if isinstance(scanned, ScannedBatch):
            _take_in(segment, scanned, tail)
        elif tail.next_offset >= place.recovery_point:
            break
        elif scanned.end < file_bytes:
            _keep_damaged(segment, scanned, tail, known)
        else:
            _keep_damaged_end(segment, scanned, tail, known, place.recovery_point)
    segment.note_max_timestamp()
    return segment.size_bytes == file_bytes


def _keep_damaged_end(
    segment: Segment, damage: Damage, tail: Tail, known: _KnownIndexes, recovery_point: int
) -> None:
    """Keeps the durable ones of the damaged batches at the end of a file, up to a torn one.

    The sizes in the headers tell where the torn one begins. But if a good durable batch may be behind that
    position, one of the sizes is damaged, and everything stays.
    """
    end = end_of_whole_batches(segment.file, damage)
    if may_hide_batch(segment.file, end, damage.end, range(tail.next_offset, recovery_point)):
        end = damage.end
    if end > damage.position:
        _keep_damaged(segment, damage._replace(end=end), tail, known)
        tail.next_offset = max(tail.next_offset, recovery_point)


def _keep_damaged(segment: Segment, damage: Damage, tail: Tail, known: _KnownIndexes) -> None:
    """Leaves durable batches that the disk has damaged in their place; only reads of them are refused."""
    share_state = known.share_state(damage)
    logger.error(
        "durable batches are damaged",
        segment=segment.log_path,
        position=damage.position,
        end=damage.end,
        reason=damage.reason,
    )
    segment.note_damage(damage.end, share_state)
    if share_state:
        last = share_state[-1]
        tail.next_offset = max(tail.next_offset, last.offset + last.last_offset_delta + 1)


def _cut(place: LogPlace, segment: Segment, tail: Tail) -> None:
    """Cuts the file behind the last good batch, or behind damaged ones that stay.

    Usually a crash has left a part of the next batch there, but a disk may also have lost durable batches.
    """
    end, file_bytes = segment.size_bytes, place.filesystem.file_size(segment.log_path)
    reason = why_not_good(segment.file, end, file_bytes, range(tail.next_offset, segment.offsets.stop))
    line = logger.bind(
        segment=segment.log_path,
        file_bytes=file_bytes,
        kept_bytes=end,
        log_end_offset=tail.next_offset,
        reason=reason,
    )
    if tail.next_offset < place.recovery_point:
        line.error("a segment is cut, and durable batches are lost", recovery_point=place.recovery_point)
    else:
        line.warning("a segment is cut behind its last whole batch")
    segment.file.truncate(end)


def _take_in(segment: Segment, batch: ScannedBatch, tail: Tail) -> None:
    _, header, data = batch
    try:
        control = read_control_batch(data, header) if may_be_share_state(header) else None
    except NewerVersion as error:
        raise NewerVersion(f"{segment.log_path}, offset {header.base_offset}: {error}") from error
    if control is None:
        segment.note_data(header.last_offset, len(data), header.max_timestamp_ms)
    else:
        segment.note_control(header.base_offset, len(data), control)
    if tail.read_from is None:
        tail.read_from = header.base_offset
    if header.producer_id >= 0:
        tail.note_produced(batch)
    if header.leader_epoch >= 0 and (
        not tail.begun_epochs or tail.begun_epochs[-1][0] != header.leader_epoch
    ):
        tail.begun_epochs.append((header.leader_epoch, header.base_offset))
    tail.next_offset = header.last_offset + 1


def read_produced(batch: ScannedBatch) -> Produced:
    """The batch of an idempotent producer; RecordFormatError for a marker that cannot be read."""
    _, header, data = batch
    return Produced(header, read_marker_batch(data, header) if header.is_control else None)


def _start_over(place: LogPlace, segments: Sequence[Segment], tail: Tail, now_ms: int) -> Segment:
    """Replaces all segments by an empty one at the log start: the log ends below its start.

    The records in between are lost, and the remaining ones were deleted and may not be read.
    """
    if tail.next_offset:
        logger.error(
            "the log ends before its start, and begins anew there",
            log=place.topic_partition.directory_name,
            log_end_offset=tail.next_offset,
            log_start_offset=place.log_start_offset,
        )
    _remove(place, segments)
    tail.start_over(place.log_start_offset)
    segment = new_segment(place, place.log_start_offset, now_ms)
    segment.create_files()
    return segment


def _remove(place: LogPlace, segments: Sequence[Segment]) -> None:
    """Removes segments durably: one that came back could be taken for records written from now on."""
    for segment in reversed(segments):
        segment.close()
        segment.remove_files()
    if segments:
        place.filesystem.sync_directory(place.directory)


def _first_timestamp_ms(segment: Segment) -> int:
    """The largest timestamp of the first data batch, by which the segment is rolled; -1 without any."""
    position = segment.share_index.get().end_of_run(0)
    batch = next(
        scan_segment(
            segment.file, position, segment.size_bytes, offsets=segment.offsets, checked_from=NEVER_CHECKED
        ),
        None,
    )
    return time_index.NO_TIMESTAMP if batch is None else batch.header.max_timestamp_ms
