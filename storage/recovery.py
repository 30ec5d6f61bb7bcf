"""Opening a log: what is on the disk becomes a `LogState`, and whatever a crash left is put right.

Below the recovery point everything is durable and trusted: batches aren't read, indexes only looked at. From
the nearest index entry below it on the log is scanned, cut behind its last good batch, and the indexes,
leader epochs and producer state of that tail are made again. An index that is missing or has an impossible
size is rebuilt from its segment. There is one way to open a log: after a clean shutdown the recovery point is
the end of the log, and the tail is short.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from uuid import UUID

from barnabas.protocol.record_batch import BatchHeader
from barnabas.storage.errors import InconsistentTopicId
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.format import offset_index, share_index, time_index
from barnabas.storage.format.checkpoint_file import CheckpointCorrupt
from barnabas.storage.format.control_runs import ControlRuns
from barnabas.storage.format.leader_epochs import LeaderEpochs
from barnabas.storage.format.offset_index import OffsetIndex
from barnabas.storage.format.partition_metadata import (
    FILE_NAME as PARTITION_METADATA_FILE,
)
from barnabas.storage.format.partition_metadata import (
    decode_partition_metadata,
    encode_partition_metadata,
)
from barnabas.storage.format.producer_snapshot import SnapshotCorrupt, decode_snapshot
from barnabas.storage.format.share_index import ShareIndex
from barnabas.storage.format.time_index import TimeIndex
from barnabas.storage.log_config import LogConfig, StorageConfig
from barnabas.storage.log_state import SNAPSHOT_SUFFIX, LogState
from barnabas.storage.open_files import OpenFiles
from barnabas.storage.producer_state import ProducerState
from barnabas.storage.segment import LOG_SUFFIX, OFFSET_DIGITS, SEGMENT_SUFFIXES, Segment
from barnabas.storage.segment_scan import ScannedBatch, scan_segment
from barnabas.storage.segments import Segments
from barnabas.storage.share_state import may_be_share_state, read_control_batch
from barnabas.storage.topic_partition import TopicPartition

LEADER_EPOCH_FILE = "leader-epoch-checkpoint"

_LEFTOVER_SUFFIXES = (".tmp", ".deleted", ".cleaned", ".swap")
_OPEN_FILES_MAX = 8
_NEVER_CHECKED = 2**63


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPlace:
    """Which log to open, and how far the checkpoint files say that it reached (exclusive offsets)."""

    filesystem: FileSystem
    directory: str
    topic_partition: TopicPartition
    topic_id: UUID
    config: LogConfig
    storage: StorageConfig
    open_files: OpenFiles
    recovery_point: int
    log_start_offset: int


@dataclass(slots=True)
class _Tail:
    """What scanning found, segment after segment."""

    next_offset: int = 0
    """Behind the last batch."""
    scanned_from: int = 0
    """The offset from which on every batch was looked at."""
    is_new: bool = False
    """Whether there was no segment."""
    begun_epochs: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """(leader epoch, offset) wherever the epoch changed."""
    produced: list[BatchHeader] = field(default_factory=list[BatchHeader])
    """The headers of what idempotent producers wrote."""


async def load_log(place: LogPlace, *, leader_epoch: int, now_ms: int) -> LogState:
    """Opens the log, or makes it; raises OSError, and InconsistentTopicId for another topic's directory."""
    filesystem = place.filesystem
    names = await filesystem.run(_prepare_directory, place)
    await _settle_topic_id(place, names)
    epochs = await _read_leader_epochs(place, names)
    # What is opened in the thread is counted there: the shared count belongs to the loop.
    in_thread = replace(place, open_files=OpenFiles(_OPEN_FILES_MAX))
    segments, tail = await filesystem.run(_load_segments, in_thread, names, now_ms)
    state = await filesystem.run(_assemble, place, segments, epochs, tail, leader_epoch)
    await _load_producers(state, _offsets_of(names, SNAPSHOT_SUFFIX), tail, now_ms)
    state.begin_leader_epoch(leader_epoch)
    for segment in segments:
        segment.hand_over(place.open_files)
    return state


def _prepare_directory(place: LogPlace) -> list[str]:
    """Makes the directory if it's missing, sweeps out what no segment needs, and lists the rest."""
    filesystem, directory = place.filesystem, place.directory
    if not filesystem.exists(directory):
        filesystem.make_directory(directory)
        filesystem.sync_directory(directory.rpartition("/")[0])
    names = filesystem.list_directory(directory)
    segments = {name.removesuffix(LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX)}
    kept: list[str] = []
    for name in names:
        stem, dot, suffix = name.partition(".")
        is_orphan = dot + suffix in SEGMENT_SUFFIXES and stem not in segments
        if is_orphan or name.endswith(_LEFTOVER_SUFFIXES):
            filesystem.remove(f"{directory}/{name}")
        else:
            kept.append(name)
    return kept


async def _settle_topic_id(place: LogPlace, names: Sequence[str]) -> None:
    path = f"{place.directory}/{PARTITION_METADATA_FILE}"
    if PARTITION_METADATA_FILE in names:
        try:
            found = decode_partition_metadata(await place.filesystem.read_whole(path))
        except CheckpointCorrupt:
            pass  # written again below: the directory's name and the metadata log say whose it is
        else:
            if found != place.topic_id:
                raise InconsistentTopicId(
                    f"{place.directory} belongs to topic {found}, not {place.topic_id}."
                )
            return
    await place.filesystem.replace_whole(path, encode_partition_metadata(place.topic_id))


async def _read_leader_epochs(place: LogPlace, names: Sequence[str]) -> LeaderEpochs:
    if LEADER_EPOCH_FILE not in names:
        return LeaderEpochs()
    try:
        return LeaderEpochs.decode(
            await place.filesystem.read_whole(f"{place.directory}/{LEADER_EPOCH_FILE}")
        )
    except CheckpointCorrupt:
        return LeaderEpochs()  # the tail's batches tell theirs, and the current epoch begins at the end


def _offsets_of(names: Iterable[str], suffix: str) -> list[int]:
    """The offsets that files are named after, ascending."""
    stems = (name.removesuffix(suffix) for name in names if name.endswith(suffix))
    return sorted(int(stem) for stem in stems if len(stem) == OFFSET_DIGITS and stem.isdigit())


def _load_segments(place: LogPlace, names: Sequence[str], now_ms: int) -> tuple[list[Segment], _Tail]:
    """Opens every segment and recovers the tail; there is one segment at least, the last one ready for
    appends.
    """
    base_offsets = _offsets_of(names, LOG_SUFFIX) or [place.log_start_offset]
    segments = [_new_segment(place, base_offset, now_ms) for base_offset in base_offsets]
    tail = _Tail(is_new=not any(name.endswith(LOG_SUFFIX) for name in names))
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


def _recover_tail(place: LogPlace, segments: Sequence[Segment], first_scanned: int, tail: _Tail) -> int:
    """Recovers the segments of the tail; how many are left in all. The files of the others are removed.

    Behind a segment that was cut nothing counts. Nor do empty segments at the end, if what was written before
    they were made is lost: the log goes on where it ends.
    """
    kept, end_offset = first_scanned, segments[first_scanned].base_offset
    for number, segment in enumerate(segments[first_scanned:], first_scanned):
        is_whole = _recover(place, segment, tail)
        if segment.size_bytes or segment.base_offset == end_offset:
            kept, end_offset = number + 1, tail.next_offset
        if not is_whole:
            break
    tail.next_offset = end_offset
    for segment in segments[kept:]:
        _remove(place.filesystem, segment)
    return kept


def _first_scanned(base_offsets: Sequence[int], recovery_point: int) -> int:
    """The number of the segment with the last offset that is durable.

    Even if the recovery point is its end: what a roll adds to its time index may be missing.
    """
    return max(sum(base_offset < recovery_point for base_offset in base_offsets) - 1, 0)


def _new_segment(place: LogPlace, base_offset: int, now_ms: int) -> Segment:
    return Segment(
        place.filesystem,
        place.directory,
        base_offset,
        index_interval_bytes=place.config.index_interval_bytes,
        open_files=place.open_files,
        created_ms=now_ms,
    )


def _read_file(filesystem: FileSystem, path: str) -> bytes | None:
    """The whole file; None if there is none."""
    try:
        file = filesystem.open(path, create=False)
    except FileNotFoundError:
        return None
    with closing(file):
        return file.read(0, file.size())


def _trust(place: LogPlace, segment: Segment) -> None:
    """Takes over a segment that is durable, unless one of its indexes cannot be what was written."""
    filesystem = place.filesystem
    segment.size_bytes = filesystem.file_size(segment.log_path)
    share_state = _read_file(filesystem, segment.share_index.path)
    is_sane = share_state is not None and share_index.is_sane(share_state)
    for index, entry_bytes in (
        (segment.offset_index, offset_index.ENTRY_BYTES),
        (segment.time_index, time_index.ENTRY_BYTES),
    ):
        is_sane = is_sane and filesystem.exists(index.path)
        index.size_bytes = filesystem.file_size(index.path) if is_sane else 0
        is_sane = is_sane and index.size_bytes % entry_bytes == 0
    if is_sane and share_state is not None:
        segment.share_index.adopt(ShareIndex(segment.base_offset, share_state), len(share_state))
        segment.timestamps_known = False
    else:
        _rebuild(place, segment)


def _recover(place: LogPlace, segment: Segment, tail: _Tail) -> bool:
    """Recovers one segment of the tail; False if it was cut and nothing behind it counts."""
    found = [_read_file(place.filesystem, index.path) for index in segment.indexes]
    offsets, times, shares = (data or b"" for data in found)
    if (
        None in found
        or not (offset_index.is_sane(offsets) and time_index.is_sane(times) and share_index.is_sane(shares))
        or not _keep_indexes_below(place, segment, offsets, times, shares)
    ):
        _forget_indexes(segment)
    is_whole = _scan(place, segment, tail, segment.offset_index.get().last_entry()[1])
    for index, data in zip(segment.indexes, found, strict=True):
        index.settle(data or b"")
    return is_whole


def _is_batch_at(place: LogPlace, segment: Segment, position: int, last_offset: int) -> bool:
    """Whether the batch that an index entry is about is there."""
    file_bytes = place.filesystem.file_size(segment.log_path)
    scan = scan_segment(
        segment.file, position, file_bytes, offsets=segment.offsets, checked_from=place.recovery_point
    )
    batch = next(scan, None)
    return batch is not None and batch.header.last_offset == last_offset


def _rebuild(place: LogPlace, segment: Segment) -> None:
    """Makes a durable segment's indexes again, on the disk too: no flush comes by there any more."""
    _forget_indexes(segment)
    _scan(place, segment, _Tail(), 0)
    for index in segment.indexes:
        index.settle(b"")
        if count_bytes := index.pending_bytes:
            index.write_pending(count_bytes)
            index.pending_written(count_bytes)


def _keep_indexes_below(
    place: LogPlace, segment: Segment, offsets_data: bytes, times_data: bytes, shares_data: bytes
) -> bool:
    """Takes the indexes up to the last offset entry below the recovery point, from which the scan begins.

    False if the log doesn't have the batch that this entry is about.
    """
    offsets = OffsetIndex(segment.base_offset, offsets_data)
    offsets.truncate_to(place.recovery_point)
    last_offset, position = offsets.last_entry()
    times = TimeIndex(segment.base_offset, times_data)
    times.truncate_to(last_offset + 1)
    shares = ShareIndex(segment.base_offset, shares_data)
    shares.truncate_to_position(position)
    segment.offset_index.adopt(offsets, len(offsets) * offset_index.ENTRY_BYTES)
    segment.time_index.adopt(times, len(times) * time_index.ENTRY_BYTES)
    segment.share_index.adopt(shares, len(shares) * share_index.ENTRY_BYTES)
    segment.max_timestamp_ms, segment.max_timestamp_offset = times.last_entry()
    return position == 0 or _is_batch_at(place, segment, position, last_offset)


def _forget_indexes(segment: Segment) -> None:
    """Lets a segment be scanned from its beginning, as if it had no indexes."""
    base_offset = segment.base_offset
    segment.offset_index.adopt(OffsetIndex(base_offset), 0)
    segment.time_index.adopt(TimeIndex(base_offset), 0)
    segment.share_index.adopt(ShareIndex(base_offset), 0)
    segment.max_timestamp_ms, segment.max_timestamp_offset = time_index.NO_TIMESTAMP, base_offset


def _scan(place: LogPlace, segment: Segment, tail: _Tail, position: int) -> bool:
    """Takes in the batches from `position` on and cuts what follows the last good one; whether nothing was
    cut.
    """
    file_bytes = place.filesystem.file_size(segment.log_path)
    segment.size_bytes = position
    tail.next_offset = max(tail.next_offset, segment.base_offset)
    for batch in scan_segment(
        segment.file,
        position,
        file_bytes,
        offsets=range(tail.next_offset, segment.offsets.stop),
        checked_from=place.recovery_point,
    ):
        _take_in(segment, batch, tail)
    segment.note_max_timestamp()
    if segment.size_bytes == file_bytes:
        return True
    segment.file.truncate(segment.size_bytes)
    return False


def _take_in(segment: Segment, batch: ScannedBatch, tail: _Tail) -> None:
    _, header, data = batch
    control = read_control_batch(data, header) if may_be_share_state(header) else None
    if control is None:
        segment.note_data(header.last_offset, len(data), header.max_timestamp_ms)
    else:
        segment.note_control(header.base_offset, len(data), control)
    if header.producer_id >= 0:
        tail.produced.append(header)
    if header.leader_epoch >= 0 and (
        not tail.begun_epochs or tail.begun_epochs[-1][0] != header.leader_epoch
    ):
        tail.begun_epochs.append((header.leader_epoch, header.base_offset))
    tail.next_offset = header.last_offset + 1


def _start_over(place: LogPlace, segments: Sequence[Segment], tail: _Tail, now_ms: int) -> Segment:
    """The log ends below its start: what lies in between is gone, and nothing that is left may be read."""
    for segment in segments:
        _remove(place.filesystem, segment)
    tail.next_offset = place.log_start_offset
    tail.produced.clear()
    tail.begun_epochs.clear()
    segment = _new_segment(place, place.log_start_offset, now_ms)
    segment.create_files()
    return segment


def _remove(filesystem: FileSystem, segment: Segment) -> None:
    segment.close()
    for path in segment.paths:
        if filesystem.exists(path):
            filesystem.remove(path)


def _first_timestamp_ms(segment: Segment) -> int:
    """The largest timestamp of the first batch of data, by which the segment is rolled; -1 without any."""
    position = segment.share_index.get().end_of_run(0)
    batch = next(
        scan_segment(
            segment.file, position, segment.size_bytes, offsets=segment.offsets, checked_from=_NEVER_CHECKED
        ),
        None,
    )
    return time_index.NO_TIMESTAMP if batch is None else batch.header.max_timestamp_ms


def _assemble(
    place: LogPlace, segments: Sequence[Segment], epochs: LeaderEpochs, tail: _Tail, leader_epoch: int
) -> LogState:
    changed = epochs.truncate_from_end(tail.next_offset)
    for begun in tail.begun_epochs:
        if begun[0] > epochs.latest_leader_epoch:
            changed |= epochs.assign(*begun)
    control_runs = ControlRuns()
    for segment in segments:
        for base_offset, last_offset in segment.share_index.get().runs():
            control_runs.append(base_offset, last_offset)
    for segment in segments[:-1]:
        segment.share_index.release()
    recovery_point = min(place.recovery_point, tail.next_offset)
    state = LogState(
        filesystem=place.filesystem,
        directory=place.directory,
        topic_partition=place.topic_partition,
        topic_id=place.topic_id,
        config=place.config,
        storage=place.storage,
        open_files=place.open_files,
        leader_epoch=leader_epoch,
        segments=Segments(segments),
        producers=ProducerState(),
        leader_epochs=epochs,
        control_runs=control_runs,
        log_start_offset=max(place.log_start_offset, segments[0].base_offset),
        log_end_offset=tail.next_offset,
        high_watermark=0,
        recovery_point=recovery_point,
        leader_epochs_changed=changed,
        directory_changed=tail.is_new,
    )
    control_runs.drop_below(state.log_start_offset)
    state.update_high_watermark()
    return state


async def _load_producers(state: LogState, snapshots: list[int], tail: _Tail, now_ms: int) -> None:
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
            checked_from=_NEVER_CHECKED,
        )
        if batch.header.producer_id >= 0 and offset <= batch.header.base_offset < end_offset
    ]
