"""The append domain of one log: one write at a time; all appends that wait meanwhile share the next write.

A write up to `append_inline_bytes_max` happens at once on the loop's thread, which costs less than the
hand-over to a thread. Larger writes run in a thread, and so do the writes after a slow one. With
log.flush=always, or if flush.messages requires it, a write is followed by an fsync before its appends are
complete, and with a `CommitPoint` they are complete when it says so.

An error that is not the peer's fault takes the log offline: a partial write is cut off again if the
disk allows it, and a failed fsync is never retried.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from barnabas.protocol.control_record import ControlType
from barnabas.protocol.errors import ApiError, without_frames
from barnabas.runtime.logging import get_logger
from barnabas.storage.errors import AppendQueueFull, DiskFull, StorageError
from barnabas.storage.filesystem import File
from barnabas.storage.log.pending_append import AppendGroup, PendingAppend
from barnabas.storage.log_config import TimestampType
from barnabas.storage.segments.segment import Segment, kept_open
from barnabas.storage.state.log_state import LogState
from barnabas.storage.state.shared_parts import measured_ms

_NS_PER_MS: Final = 1_000_000

logger = get_logger("log")


class CommitPoint(Protocol):
    """Decides which written records count: they are answered and delivered from then on."""

    def written(self, end_offset: int) -> int:
        """The log ends at this offset now. The end of what counts, both exclusive; `Appender.commit` tells of
        a later one.
        """
        ...


class _Held(NamedTuple):
    """A group that is written and does not count yet; both ends are exclusive."""

    end_offset: int
    appends: Sequence[PendingAppend]
    data_end_offset: int
    first_unstable_offset: int | None
    """See `LogState`; after this group."""


class Appender:
    """Writes appends in their order. Used on the loop's thread only."""

    __slots__ = (
        "_busy",
        "_commit_point",
        "_committed_offset",
        "_data_end_offset",
        "_first_unstable_offset",
        "_held",
        "_in_thread",
        "_is_committing",
        "_log",
        "_queue",
        "_queue_bytes",
        "_refused",
        "_slow",
        "_synced_segment",
    )

    def __init__(self, log: LogState) -> None:
        self._log = log
        self._queue: deque[tuple[PendingAppend, int]] = deque()
        self._queue_bytes = 0
        self._busy = False
        self._slow = False
        self._synced_segment: Segment | None = None
        """The active segment, once a sync of the directory has made its files' names durable."""
        self._in_thread: asyncio.Task[None] | None = None
        self._refused: StorageError | None = None
        """The error for all further appends, once the log is being closed."""
        self._data_end_offset = log.high_watermark
        """The end of the last batch that is not share state, whether it counts or not."""
        self._first_unstable_offset = log.first_unstable_offset
        """That after all that is written."""
        self._commit_point: CommitPoint | None = None
        """None if what is written counts."""
        self._held: deque[_Held] = deque()
        """What is written and does not count yet. It fails when the log goes offline."""
        self._committed_offset = 0
        self._is_committing = False
        log.on_offline = self._went_offline

    @property
    def _name(self) -> str:
        return self._log.topic_partition.directory_name

    def submit(self, pending: PendingAppend, now_ms: int) -> None:
        """Appends now or later; `written` or `failed` of `pending` is called in every case."""
        log = self._log
        refusal = log.offline or self._refused
        if refusal is not None:
            pending.failed(without_frames(refusal))
        elif self._queue_bytes + pending.size_bytes > log.storage.append_queue_bytes_max and self._busy:
            pending.failed(AppendQueueFull(f"{log.topic_partition.directory_name}: the disk is too slow."))
        else:
            self._queue.append((pending, now_ms))
            self._queue_bytes += pending.size_bytes
            if not self._busy:
                self._work()

    def roll(self, now_ms: int) -> bool:
        """Begins a new segment, unless a write is under way; raises OSError."""
        if self._busy or self._log.segments.active.size_bytes == 0:
            return False
        self._log.roll(now_ms)
        return True

    async def drained(self) -> None:
        """Returns once no append is under way."""
        while self._in_thread is not None:
            await asyncio.wait([self._in_thread])

    def _work(self) -> None:
        """Writes group after group until the queue is empty, or a thread writes one.

        Listeners of finished appends may append again; the queue keeps those for the next round.
        """
        log = self._log
        self._busy = True
        try:
            while self._queue and self._in_thread is None:
                group = self._plan()
                if group is None:
                    continue
                sync = group.next_offset > log.durability.unsynced_end_max
                if sync or self._slow or group.size_bytes > log.storage.append_inline_bytes_max:
                    writing = self._write_in_thread(group, sync=sync)
                    self._in_thread = asyncio.get_running_loop().create_task(writing)
                    return
                try:
                    self._finish(group, self._write(group, log.segments.active.file))
                except Exception as error:
                    self._give_up(group, error)
        finally:
            self._busy = self._in_thread is not None

    def _plan(self) -> AppendGroup | None:
        """Takes the appends of one write from the queue; None if there is nothing to write. The first one
        always goes, if necessary into a new segment.
        """
        log = self._log
        group = AppendGroup(
            log.log_end_offset,
            log.leader_epoch,
            log.producers,
            log_append_time=log.config.message_timestamp_type is TimestampType.LOG_APPEND_TIME,
        )
        try:
            while self._queue:
                pending, now_ms = self._queue[0]
                size_bytes = group.size_bytes + pending.size_bytes
                last_offset = group.next_offset + pending.offset_count - 1
                if group.buffers and size_bytes > log.storage.append_group_bytes_max:
                    break
                if not log.segments.active.takes(
                    size_bytes, last_offset, now_ms, pending.timestamp_ms, log.config
                ):
                    if group.buffers:
                        break
                    log.roll(now_ms)
                self._queue.popleft()
                self._queue_bytes -= pending.size_bytes
                try:
                    pending.plan(group)
                except Exception as error:
                    self._not_encoded(pending, error)
        except OSError as error:
            self._give_up(group, error)
            return None
        if group.buffers:
            return group
        if self._held:  # duplicates of batches that do not count yet
            self._hold(group)
        else:
            self._release(group.appends, self._data_end_offset)
        return None

    def _not_encoded(self, pending: PendingAppend, error: Exception) -> None:
        if not isinstance(error, ApiError | StorageError):
            # A defect of the encoder. The caller can only try again.
            logger.error("an append could not be encoded", log=self._name, exc_info=error)
        self._fail(pending, error)

    def _write(self, group: AppendGroup, file: File) -> int:
        """Writes the group; returns the duration in nanoseconds."""
        monotonic_ns = self._log.filesystem.monotonic_ns
        started_ns = monotonic_ns()
        file.write(group.buffers)
        group.written = True
        return monotonic_ns() - started_ns

    async def _write_in_thread(self, group: AppendGroup, *, sync: bool) -> None:
        log = self._log
        segments = log.segments.from_offset(log.durability.durable_offset) if sync else [log.segments.active]
        with kept_open(segments):
            try:
                # Opened here, because open files are counted on the loop's thread.
                files = [segment.file for segment in segments]
                if sync:
                    new_directory = self._synced_segment is not segments[-1]
                    with measured_ms(log.shared.flush_ms):
                        duration_ns = await log.filesystem.run(
                            self._write_and_sync, group, files, new_directory=new_directory
                        )
                    self._synced_segment = segments[-1]
                else:
                    duration_ns = await log.filesystem.run(self._write, group, files[-1])
                # Another part may have found a failure of the disk meanwhile. Then nothing is promised.
                log.check_online()
                if sync:
                    log.durability.note_durable(group.next_offset)
                self._finish(group, duration_ns)
            except Exception as error:
                self._give_up(group, error)
            finally:
                self._in_thread = None
        self._work()

    def _write_and_sync(self, group: AppendGroup, files: Sequence[File], *, new_directory: bool) -> int:
        """Writes the group to the last file and syncs all files; returns the write's duration in nanoseconds.

        `new_directory` syncs the directory too, because a file in it may be new.
        """
        duration_ns = self._write(group, files[-1])
        for file in files:
            file.sync()
        if new_directory:
            self._log.filesystem.sync_directory(self._log.directory)
        return duration_ns

    def _finish(self, group: AppendGroup, duration_ns: int) -> None:
        """Adds the group, whose write took this time, to the log's state, then completes its appends."""
        log = self._log
        self._slow = duration_ns > log.storage.append_slow_ms * _NS_PER_MS
        log.slow_write_count += self._slow
        segment = log.segments.active
        data_end_offset = self._data_end_offset
        for size_bytes, base_offset, last_offset, max_timestamp_ms, control, data in group.batches:
            if control is None:
                segment.note_data(last_offset, size_bytes, max_timestamp_ms)
                if data is not None:
                    log.newest.add(data_end_offset, base_offset, last_offset, data)
                elif log.newest.size_bytes:
                    log.newest.forget()
                data_end_offset = last_offset + 1
            else:
                segment.note_control(base_offset, size_bytes, control)
                log.control_runs.append(base_offset, last_offset)
                if control.kind == ControlType.SHARE_CHECKPOINT:
                    log.share_heads.note_checkpoint(control.group_id, base_offset, control.tombstone)
        if group.producers:
            log.producers.update(group.producers)
        if group.steps:
            for aborted in log.producers.take_steps(group.steps):
                segment.note_aborted(aborted)
            self._first_unstable_offset = log.unstable_of_producers()
        log.log_end_offset = group.next_offset
        durability = log.durability
        due_bytes = durability.synced_bytes + log.storage.flush_bytes
        before_bytes = durability.appended_bytes
        durability.appended_bytes += group.size_bytes
        if before_bytes < due_bytes <= durability.appended_bytes:
            log.signal(log.on_flush_due)
        self._data_end_offset = data_end_offset
        if self._commit_point is None:
            log.first_unstable_offset = self._first_unstable_offset
            self._release(group.appends, data_end_offset)
        else:
            committed_offset = self._commit_point.written(group.next_offset)
            self._hold(group)
            self.commit(committed_offset)

    def hold_until(self, commit_point: CommitPoint) -> None:
        """From now on `commit_point` decides when written records count."""
        self._commit_point = commit_point

    def _hold(self, group: AppendGroup) -> None:
        held = _Held(group.next_offset, group.appends, self._data_end_offset, self._first_unstable_offset)
        self._held.append(held)
        self._log.is_holding = True

    def commit(self, end_offset: int) -> None:
        """What is written below this offset (exclusive) counts: its appends are complete, and its records are
        visible.

        A listener of these may append, or commit more: that follows when the appends before it are complete.
        """
        self._committed_offset = max(end_offset, self._committed_offset)
        if self._is_committing:
            return
        self._is_committing = True
        try:
            while self._held and self._held[0].end_offset <= self._committed_offset:
                _, appends, data_end_offset, self._log.first_unstable_offset = self._held.popleft()
                self._log.is_holding = bool(self._held)
                self._release(appends, data_end_offset)
        finally:
            self._is_committing = False

    def _release(self, appends: Sequence[PendingAppend], data_end_offset: int) -> None:
        log = self._log
        has_moved = data_end_offset > log.high_watermark
        if has_moved:
            log.high_watermark = data_end_offset
        for append in appends:
            try:
                append.written(log.log_start_offset)
            except Exception as error:
                # A defect of the owner. The other appends of the group must still be completed.
                logger.error("the owner of a written append failed", log=self._name, exc_info=error)
        if has_moved:
            log.signal(log.on_moved)

    def _fail(self, append: PendingAppend, error: Exception) -> None:
        try:
            append.failed(error)
        except Exception as defect:
            logger.error("the owner of a failed append failed", log=self._name, exc_info=defect)

    def _give_up(self, group: AppendGroup, cause: Exception) -> None:
        """Fails the group and all appends behind it, and takes the log offline. Only the metadata log stays
        online on a full disk (`_refusal`). A request opens an offline log again (`PartitionLogs`).

        A bug of ours takes it offline too, because the content of the file is as unknown as after an OSError.
        """
        if not isinstance(cause, OSError | StorageError):
            logger.error("a write failed", log=self._name, exc_info=cause)
        error = self._refusal(group, cause) or self._log.go_offline(cause)
        self._fail_with_queue(group.appends, error)

    def _fail_with_queue(self, appends: Sequence[PendingAppend], error: Exception) -> None:
        """Fails these appends, and then all that are in the queue."""
        waiting = [*appends, *(pending for pending, _ in self._queue)]
        self._queue.clear()
        self._queue_bytes = 0
        for append in waiting:
            self._fail(append, error)

    def _went_offline(self) -> None:
        assert self._log.offline is not None
        for append in self._take_held():
            self._fail(append, without_frames(self._log.offline))

    def _take_held(self) -> list[PendingAppend]:
        held = [append for group in self._held for append in group.appends]
        self._held.clear()
        return held

    def _refusal(self, group: AppendGroup, cause: Exception) -> DiskFull | None:
        """The error if the log stays online on a full disk; nothing of the group is left in the file.

        None if the whole group was written: after a failed fsync the content of the disk is unknown.
        """
        is_cut = self._cut_partial_write()
        return self._log.refusal_if_full(cause) if is_cut and not group.written else None

    def _cut_partial_write(self) -> bool:
        """Cuts off a partial write, so that recovery does not find records whose appends have failed.

        If the disk refuses that too (False), the log stays fenced and recovery decides by the checksums.
        """
        segment = self._log.segments.active
        try:
            segment.file.truncate(segment.size_bytes)
        except OSError:
            return False
        return True

    def refuse(self, error: StorageError) -> None:
        """Refuses further appends, because the log is being closed; waiting appends are still written."""
        self._refused = error

    def abandon(self, error: StorageError) -> None:
        """Fails waiting appends, those that do not count yet, and further ones, because the log is closed; a
        write under way still finishes.
        """
        self.refuse(error)
        self._fail_with_queue(self._take_held(), error)
