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
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from barnabas.protocol.errors import without_frames
from barnabas.storage.errors import DiskFull
from barnabas.storage.filesystem import File, replace_whole
from barnabas.storage.log_config import LogConfig
from barnabas.storage.producers.producer_state import ProducerState
from barnabas.storage.recovery.checksum_recovery import write_index_checksums
from barnabas.storage.recovery.share_head_recovery import take_share_snapshot, write_share_snapshot
from barnabas.storage.segments.segment import Segment, SegmentIndex, kept_open
from barnabas.storage.state.log_files import LEADER_EPOCH_FILE
from barnabas.storage.state.log_state import LogState
from barnabas.storage.state.shared_parts import measured_ms


class _BesideRecords(NamedTuple):
    """The data that a flush writes beside the records, captured at the flush's begin."""

    producers: Sequence[tuple[int, ProducerState]]
    """(offset, producers) of the producer snapshots."""
    share_snapshot: bytes | None
    leader_epochs: bytes | None


class Flusher:
    """Flushes one log, one flush at a time."""

    __slots__ = ("__weakref__", "_lock", "_log")

    def __init__(self, log: LogState, lock: asyncio.Lock) -> None:
        self._log = log
        self._lock = lock
        """Held during every change of the log's files except appends."""

    @property
    def config(self) -> LogConfig:
        """The log's settings."""
        return self._log.config

    @property
    def unflushed_bytes(self) -> int:
        """Appended since records were last made durable by a sync or a flush."""
        return self._log.durability.unflushed_bytes

    @property
    def recovery_scan_bytes(self) -> int:
        """The appended bytes that recovery would scan after a crash."""
        return self._log.durability.recovery_scan_bytes

    @property
    def has_rolled(self) -> bool:
        """Whether closed segments wait for their last flush."""
        log = self._log
        return self.needs_flush and log.segments.active.base_offset > log.durability.recovery_point

    @property
    def needs_sync(self) -> bool:
        """Whether a loss of power could lose records or names of files."""
        log, durability = self._log, self._log.durability
        return log.offline is None and (
            log.log_end_offset > durability.durable_offset or durability.directory_changed
        )

    @property
    def needs_flush(self) -> bool:
        """Whether anything changed since the last flush."""
        log, durability = self._log, self._log.durability
        return log.offline is None and (
            log.log_end_offset > durability.recovery_point
            or durability.directory_changed
            or log.leader_epochs.changed
            or log.producer_snapshots.rolled is not None
            or log.share_heads.changed
            or any(index.pending_bytes for index in log.segments.active.indexes)
        )

    async def sync(self) -> None:
        """Returns once everything appended before is durable; the recovery point stays. StorageError."""
        async with self._lock:
            log = self._log
            log.check_online()
            segments = log.segments.from_offset(log.durability.durable_offset)
            try:
                with kept_open(segments):
                    await self._sync(segments)
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
        end_offset = log.log_end_offset
        beside = self._take_beside(end_offset)
        try:
            await self._sync_segments()
            await self._move_recovery_point(end_offset, beside)
        except (DiskFull, asyncio.CancelledError):
            self._put_back(beside)
            raise
        except OSError as error:
            raise log.go_offline(error) from error

    async def _move_recovery_point(self, end_offset: int, beside: _BesideRecords) -> None:
        log = self._log
        with self._outlived():
            if beside.leader_epochs is not None:
                path = f"{log.directory}/{LEADER_EPOCH_FILE}"
                await log.filesystem.run(replace_whole, log.filesystem, path, beside.leader_epochs)
            await log.producer_snapshots.write(beside.producers, end_offset)
        log.durability.move_recovery_point(end_offset)
        if beside.share_snapshot is not None:
            await write_share_snapshot(log, beside.share_snapshot)
        await write_index_checksums(log)

    def _take_beside(self, end_offset: int) -> _BesideRecords:
        """Captures the changes, which count as written from now on."""
        log = self._log
        producers = log.producer_snapshots.take(end_offset, log.producers)
        leader_epochs = log.leader_epochs.encode() if log.leader_epochs.changed else None
        log.leader_epochs.changed = False
        return _BesideRecords(producers, take_share_snapshot(log), leader_epochs)

    def _put_back(self, beside: _BesideRecords) -> None:
        """Marks the captured changes as not written: this flush found no room for them, or was cancelled."""
        log = self._log
        log.producers.changed |= bool(beside.producers)
        log.share_heads.changed |= beside.share_snapshot is not None
        log.leader_epochs.changed |= beside.leader_epochs is not None
        log.durability.directory_changed = True  # it may have the name of a new index

    async def _sync_segments(self) -> None:
        """Syncs the records behind the recovery point, and writes their index entries."""
        log = self._log
        segments = log.segments.from_offset(max(log.durability.recovery_point - 1, 0))
        indexes = [index for segment in segments for index in segment.indexes]
        pending = [(index, index.pending_bytes) for index in indexes if index.pending_bytes]
        with kept_open(segments):
            await self._sync(segments)
            with self._outlived():
                await log.filesystem.run(self._write_indexes, pending)
            for index, count_bytes in pending:
                index.pending_written(count_bytes)

    async def _sync(self, segments: Sequence[Segment]) -> None:
        """Makes the records of these segments durable; no other segment has records that are not."""
        log = self._log
        files = [segment.file for segment in segments]
        with log.durability.syncing(log.log_end_offset) as with_directory, measured_ms(log.shared.flush_ms):
            await log.filesystem.run(self._sync_records, files, with_directory=with_directory)

    def _sync_records(self, files: Sequence[File], *, with_directory: bool) -> None:
        for file in files:
            file.sync()
        if with_directory:
            self._log.filesystem.sync_directory(self._log.directory)

    def _write_indexes(self, pending: Sequence[tuple[SegmentIndex, int]]) -> None:
        """Writes the pending index entries; syncs the directory if an index file is new."""
        files_made = False
        for index, count_bytes in pending:
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
