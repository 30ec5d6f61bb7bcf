"""Makes a log durable, and moves its recovery point. After a crash, recovery scans the log from that point.

A sync makes durable all records up to the log's end at the sync's begin. A flush does this, and then writes
the other data that recovery trusts below the recovery point: the indexes' new entries, the producers'
snapshot and the leader epochs. The blocking part runs in a thread while appends continue. A failure takes the
log offline: a failed fsync of records is never retried, because the dirty pages may be lost. A log that
outlives a full disk stays online if only the files beside the records found no room; the next flush writes
them again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import NamedTuple

from barnabas.protocol.errors import without_frames
from barnabas.storage.errors import DiskFull
from barnabas.storage.filesystem import File, FileSystem, replace_whole
from barnabas.storage.format.producer_snapshot import encode_snapshot
from barnabas.storage.log_config import LogConfig
from barnabas.storage.producers.producer_state import ProducerState
from barnabas.storage.recovery.checksum_recovery import write_index_checksums
from barnabas.storage.recovery.share_head_recovery import take_share_snapshot, write_share_snapshot
from barnabas.storage.segments.segment import Segment
from barnabas.storage.state.log_files import LEADER_EPOCH_FILE
from barnabas.storage.state.log_state import LogState
from barnabas.storage.state.shared_parts import measured_ms

_SNAPSHOTS_KEPT = 2


class _SegmentWork(NamedTuple):
    """The work of the thread for one segment; `pending_bytes` are those of its indexes, in their order."""

    segment: Segment
    file: File
    pending_bytes: list[int]


class _BesideRecords(NamedTuple):
    """The data that a flush writes beside the records, captured at the flush's begin."""

    snapshots: list[tuple[int, ProducerState]]
    """(offset, producers) of the producer snapshots to write."""
    renamed: int | None
    """The offset of the snapshot that is still valid and is renamed to the new end."""
    share_snapshot: bytes | None
    leader_epochs: bytes | None
    directory_changed: bool


class Flusher:
    """Flushes one log, one flush at a time."""

    __slots__ = ("__weakref__", "_directory_synced", "_lock", "_log")

    def __init__(self, log: LogState, lock: asyncio.Lock) -> None:
        self._log = log
        self._lock = lock
        """Held during every change of the log's files except appends."""
        self._directory_synced = False
        """False until the first sync: an earlier process may have been killed before the names of its new
        files were durable."""

    @property
    def config(self) -> LogConfig:
        """The log's settings."""
        return self._log.config

    @property
    def unflushed_bytes(self) -> int:
        """Appended since records were last made durable by a sync or a flush."""
        return self._log.unflushed_bytes

    @property
    def recovery_scan_bytes(self) -> int:
        """The appended bytes that recovery would scan after a crash."""
        return self._log.recovery_scan_bytes

    @property
    def has_rolled(self) -> bool:
        """Whether closed segments wait for their last flush."""
        return self.needs_flush and self._log.segments.active.base_offset > self._log.recovery_point

    @property
    def needs_sync(self) -> bool:
        """Whether a loss of power could lose records or names of files."""
        log = self._log
        return log.offline is None and (log.log_end_offset > log.durable_offset or log.directory_changed)

    @property
    def needs_flush(self) -> bool:
        """Whether anything changed since the last flush."""
        log = self._log
        return log.offline is None and (
            log.log_end_offset > log.recovery_point
            or log.leader_epochs_changed
            or log.directory_changed
            or log.rolled_snapshot is not None
            or log.share_heads.changed
            or any(index.pending_bytes for index in log.segments.active.indexes)
        )

    async def sync(self) -> None:
        """Returns once everything appended before is durable; the recovery point stays. StorageError."""
        async with self._lock:
            log = self._log
            log.check_online()
            try:
                with self._pinned(log.durable_offset) as work:
                    await self._sync(work, directory_changed=self._take_directory_changed())
            except OSError as error:
                raise log.go_offline(error) from error

    async def flush(self) -> None:
        """Returns once everything appended before is durable and below the recovery point.

        Raises StorageError if that fails.
        """
        async with self._lock:
            await self.flush_locked()

    async def flush_locked(self) -> None:
        """As `flush`, for callers that hold the lock."""
        log = self._log
        log.check_online()
        end_offset, scan_bytes = log.log_end_offset, log.recovery_scan_bytes
        beside = self._take_beside(end_offset)
        try:
            await self._sync_segments(directory_changed=beside.directory_changed)
            await self._move_recovery_point(end_offset, beside)
        except (DiskFull, asyncio.CancelledError):
            self._put_back(beside)
            raise
        except OSError as error:
            raise log.go_offline(error) from error
        log.recovery_scan_bytes -= scan_bytes

    async def _move_recovery_point(self, end_offset: int, beside: _BesideRecords) -> None:
        log = self._log
        with self._outlived():
            await self._write_beside(end_offset, beside)
        log.recovery_point = end_offset
        if beside.share_snapshot is not None:
            await write_share_snapshot(log, beside.share_snapshot)
        await write_index_checksums(log)

    async def _write_beside(self, end_offset: int, beside: _BesideRecords) -> None:
        log, filesystem = self._log, self._log.filesystem
        if beside.renamed is not None:
            renamed, path = log.snapshot_path(beside.renamed), log.snapshot_path(end_offset)
            await filesystem.run(filesystem.rename, renamed, path)
            log.snapshot_offsets[-1] = end_offset
        for offset, producers in beside.snapshots:
            await filesystem.run(_write_snapshot, filesystem, log.snapshot_path(offset), producers)
            log.snapshot_offsets = sorted({*log.snapshot_offsets, offset})
        if beside.leader_epochs is not None:
            path = f"{log.directory}/{LEADER_EPOCH_FILE}"
            await filesystem.run(replace_whole, filesystem, path, beside.leader_epochs)
        await self._drop_old_snapshots()

    def _take_beside(self, end_offset: int) -> _BesideRecords:
        """Captures the changes, which count as written from now on."""
        log = self._log
        snapshots, renamed = self._take_snapshots(end_offset)
        leader_epochs = log.leader_epochs.encode() if log.leader_epochs_changed else None
        log.leader_epochs_changed = False
        return _BesideRecords(
            snapshots, renamed, take_share_snapshot(log), leader_epochs, self._take_directory_changed()
        )

    def _take_directory_changed(self) -> bool:
        """Whether the directory must be synced, which counts as done from now on."""
        log = self._log
        directory_changed = log.directory_changed or not self._directory_synced
        log.directory_changed = False
        return directory_changed

    def _put_back(self, beside: _BesideRecords) -> None:
        """Marks the captured changes as not written: this flush found no room for them, or was cancelled."""
        log = self._log
        log.producers.changed |= bool(beside.snapshots)
        log.share_heads.changed |= beside.share_snapshot is not None
        log.leader_epochs_changed |= beside.leader_epochs is not None
        log.directory_changed |= beside.directory_changed

    def _take_snapshots(self, end_offset: int) -> tuple[list[tuple[int, ProducerState]], int | None]:
        """The producer snapshots to write, and the offset of the snapshot to rename to the new end.

        Once the log had a producer, each flush needs a snapshot: otherwise the newest snapshot and the
        records behind the recovery point would not contain the whole state.
        """
        log = self._log
        snapshots: list[tuple[int, ProducerState]] = []
        rolled, log.rolled_snapshot = log.rolled_snapshot, None
        if rolled is not None and rolled[0] < end_offset:
            snapshots.append(rolled)
            if not log.producers.changed:
                snapshots.append((end_offset, rolled[1]))
        newest = log.snapshot_offsets[-1] if log.snapshot_offsets else None
        renamed = None
        if log.producers.changed:
            log.producers.changed = False
            snapshots.append((end_offset, log.producers.copy()))
        elif newest is not None and newest < end_offset and not snapshots:
            renamed = newest
        return snapshots, renamed

    async def _sync_segments(self, *, directory_changed: bool) -> None:
        """Syncs the records behind the recovery point, and writes their index entries."""
        log = self._log
        with self._pinned(max(log.recovery_point - 1, 0)) as work:
            await self._sync(work, directory_changed=directory_changed)
            with self._outlived():
                await log.filesystem.run(self._write_indexes, work)
            for segment, _, pending_bytes in work:
                for index, count_bytes in zip(segment.indexes, pending_bytes, strict=True):
                    index.pending_written(count_bytes)

    @contextmanager
    def _pinned(self, offset: int) -> Generator[list[_SegmentWork]]:
        """The segments from the one with `offset` on, with their files kept open in the `with` block."""
        work: list[_SegmentWork] = []
        try:
            for segment in self._log.segments.from_offset(offset):
                segment.pin()
                pending_bytes = [index.pending_bytes for index in segment.indexes]
                work.append(_SegmentWork(segment, segment.file, pending_bytes))
            yield work
        finally:
            for segment, _, _ in work:
                segment.unpin()

    async def _sync(self, work: list[_SegmentWork], *, directory_changed: bool) -> None:
        """Makes the records of these segments durable; no other segment has records that are not."""
        log = self._log
        end_offset, unflushed_bytes = log.log_end_offset, log.unflushed_bytes
        with measured_ms(log.shared.flush_ms):
            await log.filesystem.run(self._sync_records, work, directory_changed=directory_changed)
        self._directory_synced = True
        log.durable_offset = max(log.durable_offset, end_offset)
        log.unflushed_bytes -= unflushed_bytes

    def _sync_records(self, work: list[_SegmentWork], *, directory_changed: bool) -> None:
        for _, file, _ in work:
            file.sync()
        if directory_changed:
            self._log.filesystem.sync_directory(self._log.directory)

    def _write_indexes(self, work: list[_SegmentWork]) -> None:
        """Writes the pending index entries; syncs the directory if an index file is new."""
        files_made = False
        for segment, _, pending_bytes in work:
            for index, count_bytes in zip(segment.indexes, pending_bytes, strict=True):
                if count_bytes:
                    files_made |= not self._log.filesystem.exists(index.path)
                    index.write_pending(count_bytes)
        if files_made:
            self._log.filesystem.sync_directory(self._log.directory)

    @contextmanager
    def _outlived(self) -> Generator[None]:
        """For writes that can be repeated: raises DiskFull if the log outlives a full disk."""
        try:
            yield
        except OSError as error:
            disk_full = self._log.refusal_if_full(error)
            if disk_full is None:
                raise
            raise without_frames(disk_full) from error

    async def _drop_old_snapshots(self) -> None:
        log = self._log
        dropped = log.snapshot_offsets[:-_SNAPSHOTS_KEPT]
        del log.snapshot_offsets[:-_SNAPSHOTS_KEPT]
        for offset in dropped:
            await log.filesystem.run(log.filesystem.remove, log.snapshot_path(offset))


def _write_snapshot(filesystem: FileSystem, path: str, producers: ProducerState) -> None:
    replace_whole(filesystem, path, encode_snapshot(producers.to_snapshot()))
