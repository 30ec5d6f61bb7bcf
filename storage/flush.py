"""Making a log durable and moving its recovery point: what a crash leaves to be scanned.

A flush takes everything up to the end of the log as it is when it begins: the records first, then what
recovery trusts below the recovery point, which are the indexes' new entries, the producers' snapshot and the
leader epochs. The blocking part runs in a thread while appends go on. Any failure takes the log offline: a
failed fsync is never tried again, since the pages that it was about may be gone.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from barnabas.storage.filesystem import File
from barnabas.storage.format.producer_snapshot import encode_snapshot
from barnabas.storage.log_state import LogState
from barnabas.storage.recovery import LEADER_EPOCH_FILE
from barnabas.storage.segment import Segment

_SNAPSHOTS_KEPT = 2


class _SegmentWork(NamedTuple):
    """What the thread does for one segment; `pending_bytes` are those of its indexes, in their order."""

    segment: Segment
    file: File
    pending_bytes: list[int]


class Flusher:
    """Flushes one log, one flush at a time."""

    __slots__ = ("_lock", "_log")

    def __init__(self, log: LogState, lock: asyncio.Lock) -> None:
        self._log = log
        self._lock = lock
        """Held by whatever changes the log's files apart from appends."""

    @property
    def is_needed(self) -> bool:
        """Whether anything changed since the last flush."""
        log = self._log
        return log.offline is None and (
            log.log_end_offset > log.recovery_point
            or log.leader_epochs_changed
            or log.directory_changed
            or log.rolled_snapshot is not None
            or any(index.pending_bytes for index in log.segments.active.indexes)
        )

    async def flush(self) -> None:
        """Returns once everything appended before is durable; raises StorageError if it cannot be made so."""
        async with self._lock:
            self._log.check_online()
            try:
                await self._flush()
            except OSError as error:
                raise self._log.go_offline(error) from error

    async def _flush(self) -> None:
        log = self._log
        end_offset, unflushed_bytes = log.log_end_offset, log.unflushed_bytes
        snapshots, renamed = self._take_snapshots(end_offset)
        epochs = log.leader_epochs.encode() if log.leader_epochs_changed else None
        directory_changed, log.directory_changed = log.directory_changed, False
        log.leader_epochs_changed = False
        await self._sync_segments(directory_changed=directory_changed)
        if renamed is not None:
            await log.filesystem.run(
                log.filesystem.rename, log.snapshot_path(renamed), log.snapshot_path(end_offset)
            )
        for offset, content in snapshots:
            await log.filesystem.replace_whole(log.snapshot_path(offset), content)
        if epochs is not None:
            await log.filesystem.replace_whole(f"{log.directory}/{LEADER_EPOCH_FILE}", epochs)
        await self._drop_old_snapshots()
        log.recovery_point = end_offset
        log.unflushed_bytes -= unflushed_bytes

    def _take_snapshots(self, end_offset: int) -> tuple[list[tuple[int, bytes]], int | None]:
        """The producer snapshots to write, and the one that only needs the new offset as its name.

        A snapshot is due as soon as there was a producer: without any, the newest one and what follows the
        recovery point would not be the whole state.
        """
        log = self._log
        snapshots: list[tuple[int, bytes]] = []
        rolled, log.rolled_snapshot = log.rolled_snapshot, None
        if rolled is not None and rolled[0] < end_offset:
            snapshots.append(rolled)
            if not log.producers.changed:
                snapshots.append((end_offset, rolled[1]))
        newest = log.snapshot_offsets[-1] if log.snapshot_offsets else None
        renamed = None
        if log.producers.changed:
            log.producers.changed = False
            snapshots.append((end_offset, encode_snapshot(log.producers.to_snapshot())))
        elif newest is not None and newest < end_offset and not snapshots:
            renamed = log.snapshot_offsets.pop()
            log.snapshot_offsets.append(end_offset)
        log.snapshot_offsets = sorted({*log.snapshot_offsets, *(offset for offset, _ in snapshots)})
        return snapshots, renamed

    async def _sync_segments(self, *, directory_changed: bool) -> None:
        log = self._log
        work: list[_SegmentWork] = []
        try:
            for segment in log.segments.from_offset(max(log.recovery_point - 1, 0)):
                segment.pin()
                pending_bytes = [index.pending_bytes for index in segment.indexes]
                work.append(_SegmentWork(segment, segment.file, pending_bytes))
            await log.filesystem.run(self._sync_in_thread, work, directory_changed=directory_changed)
            for segment, _, pending_bytes in work:
                for index, count_bytes in zip(segment.indexes, pending_bytes, strict=True):
                    index.pending_written(count_bytes)
        finally:
            for segment, _, _ in work:
                segment.unpin()

    def _sync_in_thread(self, work: list[_SegmentWork], *, directory_changed: bool) -> None:
        for segment, file, pending_bytes in work:
            file.sync()
            for index, count_bytes in zip(segment.indexes, pending_bytes, strict=True):
                if count_bytes:
                    index.write_pending(count_bytes)
        if directory_changed:
            self._log.filesystem.sync_directory(self._log.directory)

    async def _drop_old_snapshots(self) -> None:
        log = self._log
        dropped = log.snapshot_offsets[:-_SNAPSHOTS_KEPT]
        del log.snapshot_offsets[:-_SNAPSHOTS_KEPT]
        for offset in dropped:
            await log.filesystem.run(log.filesystem.remove, log.snapshot_path(offset))
