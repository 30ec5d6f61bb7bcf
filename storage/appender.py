"""The append domain of one log: one write at a time, and whatever waits meanwhile shares the next.

A write up to `append_inline_bytes_max` happens at once on the loop's thread, which costs less than a thread's
hand-over; larger ones go to a thread, and so do those after a write that was slow. With log.flush=always each
write is followed by an fsync before its appends are done. An error, short of the peer's faults, takes the log
offline: what was written in part is cut away again if the disk allows it, and a failed fsync is never
retried.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from barnabas.storage.append import Append
from barnabas.storage.errors import AppendQueueFull, StorageError
from barnabas.storage.filesystem import File
from barnabas.storage.log_config import FlushPolicy, TimestampType
from barnabas.storage.log_state import LogState
from barnabas.storage.pending_append import AppendGroup, PendingAppend

_NS_PER_MS = 1_000_000

_logger = logging.getLogger(__name__)


class Appender:
    """Takes appends in order. To be used on the loop's thread."""

    __slots__ = ("_busy", "_in_thread", "_log", "_queue", "_queue_bytes", "_slow", "_sync_each")

    def __init__(self, log: LogState) -> None:
        self._log = log
        self._queue: deque[tuple[PendingAppend, int]] = deque()
        self._queue_bytes = 0
        self._busy = False
        self._slow = False
        self._sync_each = log.storage.flush is FlushPolicy.ALWAYS
        self._in_thread: asyncio.Task[None] | None = None

    def submit(self, pending: PendingAppend, now_ms: int) -> Append:
        """Appends, now or in turn; the outcome, and any failure, is in the ticket."""
        log = self._log
        if log.offline is not None:
            pending.ticket.fail(log.offline)
        elif self._queue_bytes + pending.size_bytes > log.storage.append_queue_bytes_max and self._busy:
            pending.ticket.fail(
                AppendQueueFull(f"{log.topic_partition.directory_name}: the disk is too slow.")
            )
        else:
            self._queue.append((pending, now_ms))
            self._queue_bytes += pending.size_bytes
            if not self._busy:
                self._work()
        return pending.ticket

    def roll(self, now_ms: int) -> bool:
        """Begins a new segment, unless a write is under way; raises OSError."""
        if self._busy or self._log.segments.active.size_bytes == 0:
            return False
        self._log.roll(now_ms)
        return True

    async def drained(self) -> None:
        """Returns once nothing is outstanding."""
        while self._in_thread is not None:
            await asyncio.wait([self._in_thread])

    def _work(self) -> None:
        """Writes group after group until the queue is empty, or a thread has taken one over.

        Callbacks of finished appends append again; those land in the queue and are taken in the next round.
        """
        self._busy = True
        try:
            while self._queue and self._in_thread is None:
                group = self._plan()
                if group is not None:
                    self._write_here_or_in_thread(group)
        finally:
            self._busy = self._in_thread is not None

    def _write_here_or_in_thread(self, group: AppendGroup) -> None:
        if self._sync_each or self._slow or group.size_bytes > self._log.storage.append_inline_bytes_max:
            self._in_thread = asyncio.get_running_loop().create_task(self._write_in_thread(group))
            return
        try:
            self._note_duration(self._write(group, self._log.segments.active.file))
            self._finish(group)
        except Exception as error:
            self._give_up(group, error)

    def _plan(self) -> AppendGroup | None:
        """Takes what goes into one write off the queue; None if there is nothing to write."""
        log = self._log
        group = AppendGroup(
            log.log_end_offset,
            log.leader_epoch,
            log.producers,
            log_append_time=log.config.message_timestamp_type is TimestampType.LOG_APPEND_TIME,
        )
        try:
            while self._queue and self._has_room(group, *self._queue[0]):
                pending, _ = self._queue.popleft()
                self._queue_bytes -= pending.size_bytes
                self._join(group, pending)
        except OSError as error:
            self._give_up(group, error)
            return None
        if group.buffers:
            return group
        for ticket in group.tickets:
            self._complete(ticket)
        return None

    def _has_room(self, group: AppendGroup, pending: PendingAppend, now_ms: int) -> bool:
        """Whether the append may join the group; the first one may, if need be in a new segment."""
        log = self._log
        size_bytes = group.size_bytes + pending.size_bytes
        if group.buffers and size_bytes > log.storage.append_group_bytes_max:
            return False
        if self._fits_segment(size_bytes, group.next_offset + pending.offset_count - 1, pending, now_ms):
            return True
        if group.buffers:
            return False
        log.roll(now_ms)
        return True

    def _fits_segment(self, size_bytes: int, last_offset: int, pending: PendingAppend, now_ms: int) -> bool:
        segment, config = self._log.segments.active, self._log.config
        if not segment.fits(
            size_bytes,
            last_offset,
            segment_bytes=config.segment_bytes,
            index_bytes=config.segment_index_bytes,
        ):
            return False
        return segment.size_bytes == 0 or segment.waited_ms(now_ms, pending.timestamp_ms) <= config.segment_ms

    def _join(self, group: AppendGroup, pending: PendingAppend) -> None:
        try:
            pending.plan(group)
        except Exception as error:  # an encoder's bug is for its caller to find, in the ticket
            pending.ticket.fail(error)

    def _write(self, group: AppendGroup, file: File) -> int:
        """Writes the group; how long that took in nanoseconds."""
        monotonic_ns = self._log.filesystem.monotonic_ns
        started_ns = monotonic_ns()
        file.write(group.buffers)
        return monotonic_ns() - started_ns

    async def _write_in_thread(self, group: AppendGroup) -> None:
        segment = self._log.segments.active
        segment.pin()
        try:
            file = segment.file  # opened here, since the bookkeeping of open files is the loop's
            write = self._write_and_sync if self._sync_each else self._write
            self._note_duration(await self._log.filesystem.run(write, group, file))
            self._log.directory_changed &= not self._sync_each
            self._finish(group)
        except Exception as error:
            self._give_up(group, error)
        finally:
            segment.unpin()
            self._in_thread = None
        self._work()

    def _write_and_sync(self, group: AppendGroup, file: File) -> int:
        """Writes the group and makes it durable, together with the directory if its files may be new."""
        duration_ns = self._write(group, file)
        file.sync()
        if self._log.directory_changed:
            self._log.filesystem.sync_directory(self._log.directory)
        return duration_ns

    def _note_duration(self, duration_ns: int) -> None:
        self._slow = duration_ns > self._log.storage.append_slow_ms * _NS_PER_MS
        self._log.slow_write_count += self._slow

    def _finish(self, group: AppendGroup) -> None:
        """Takes what was written into the log's state, then tells those who wait for it."""
        log = self._log
        segment = log.segments.active
        high_watermark = log.high_watermark
        for size_bytes, base_offset, last_offset, max_timestamp_ms, control in group.batches:
            if control is None:
                segment.note_data(last_offset, size_bytes, max_timestamp_ms)
                log.high_watermark = last_offset + 1
            else:
                segment.note_control(base_offset, size_bytes, control)
                log.control_runs.append(base_offset, last_offset)
        if group.producers:
            log.producers.update(group.producers)
        log.log_end_offset = group.next_offset
        self._count_unflushed(group.size_bytes)
        for ticket in group.tickets:
            self._complete(ticket)
        if log.high_watermark != high_watermark:
            self._signal(log.on_moved)

    def _count_unflushed(self, size_bytes: int) -> None:
        log = self._log
        before_bytes = log.unflushed_bytes
        log.unflushed_bytes += size_bytes
        if before_bytes < log.storage.flush_bytes <= log.unflushed_bytes:
            self._signal(log.on_flush_due)

    def _signal(self, listener: Callable[[], None]) -> None:
        """Tells a listener, whose bugs must not keep the appends behind from being written and answered."""
        try:
            listener()
        except Exception:
            _logger.exception("%s: a listener failed", self._log.topic_partition.directory_name)

    def _complete(self, ticket: Append) -> None:
        ticket.log_start_offset = self._log.log_start_offset
        ticket.complete()

    def _give_up(self, group: AppendGroup, cause: Exception) -> None:
        """Fails the group and everything behind it; the log is offline from here on.

        So it is after a bug of ours, since what is in the file then is as unknown as after an OSError.
        """
        if not isinstance(cause, OSError):
            _logger.error("%s: a write failed", self._log.topic_partition.directory_name, exc_info=cause)
        error = self._log.go_offline(cause)
        self._cut_partial_write()
        waiting = [*group.tickets, *(pending.ticket for pending, _ in self._queue)]
        self._queue.clear()
        self._queue_bytes = 0
        for ticket in waiting:
            ticket.fail(error)

    def _cut_partial_write(self) -> None:
        """Takes back what was written of a group, so that recovery doesn't find what was answered as failed.

        If the disk refuses that too, the log stays fenced and recovery decides by the checksums.
        """
        segment = self._log.segments.active
        try:
            segment.file.truncate(segment.size_bytes)
        except OSError:
            return

    def abandon(self, error: StorageError) -> None:
        """Fails what waits, since the log is closed; what is being written still finishes."""
        waiting = [pending.ticket for pending, _ in self._queue]
        self._queue.clear()
        self._queue_bytes = 0
        for ticket in waiting:
            ticket.fail(error)
