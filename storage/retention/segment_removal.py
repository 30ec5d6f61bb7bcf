"""Removes the segments of a log that `retention` has chosen, oldest first.

Their files are renamed at once, and removed after file.delete.delay.ms (`delayed_removal`). A checkpoint of a
share group is removed only when a newer one is durable. If no data is to be kept, the active segment is
rolled and removed too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from barnabas.storage.files.delayed_removal import DelayedRemoval
from barnabas.storage.flushing.flush import Flusher
from barnabas.storage.reading.read_errors import Reads
from barnabas.storage.recovery.share_head_recovery import prove_share_heads
from barnabas.storage.retention.retention import expired_count, pinning_groups
from barnabas.storage.segments.segment import Segment
from barnabas.storage.state.log_state import LogState


class SegmentRemoval:
    """Removes one log's segments. Used on the loop's thread only.

    `roll` begins a new segment unless a write is under way, and returns whether it did. `on_removed` is
    called when segments have left the log.
    """

    __slots__ = ("_delayed", "_files_lock", "_flusher", "_log", "_on_removed", "_reads", "_roll")

    def __init__(
        self,
        log: LogState,
        files_lock: asyncio.Lock,
        flusher: Flusher,
        *,
        roll: Callable[[int], bool],
        on_removed: Callable[[], None],
    ) -> None:
        self._log = log
        self._files_lock = files_lock
        """Held during every change of the log's files except appends."""
        self._flusher = flusher
        self._roll = roll
        self._on_removed = on_removed
        self._reads = Reads(log)
        self._delayed = DelayedRemoval(log.filesystem)

    async def remove_expired(self, now_ms: int) -> tuple[int, frozenset[str]]:
        """Removes the due segments; returns their number, and the ids of the share groups that keep others.

        Raises StorageError. The log is offline then if files could not be created or removed.
        """
        log = self._log
        async with self._files_lock:
            log.check_online()
            dropped, pinning = self._drop_expired(now_ms, await self._durable_heads(now_ms))
            try:
                for segment in dropped:
                    await self._remove_files(segment)
            except OSError as error:
                raise log.go_offline(error) from error
        return len(dropped), pinning

    async def close(self) -> None:
        """Leaves the files that wait for their removal to the next start."""
        await self._delayed.close()

    async def _remove_files(self, segment: Segment) -> None:
        log, delay_ms = self._log, self._log.config.file_delete_delay_ms
        if delay_ms == 0:
            await log.filesystem.run(segment.remove_files)
        else:
            self._delayed.remove_later(await log.filesystem.run(segment.mark_deleted), delay_ms)

    async def _durable_heads(self, now_ms: int) -> Mapping[str, int]:
        """The proven and durable heads, by which segments may be removed; empty if no segment is due.

        The log may have newer ones, not durable yet, when this returns.
        """
        log = self._log
        with self._reads:
            if not expired_count(log, now_ms):
                return {}
            if not log.share_heads.is_proven:
                await prove_share_heads(log)
        heads = dict(log.share_heads.live())
        # Removed records must be in a snapshot of the producers, which a sync does not write.
        if log.durability.recovery_point < log.log_end_offset:
            await self._flusher.flush_locked()
            log.check_online()
        return heads

    def _drop_expired(
        self, now_ms: int, durable_heads: Mapping[str, int]
    ) -> tuple[Sequence[Segment], frozenset[str]]:
        """Takes the due segments out of the log; returns them, and the ids of the groups that keep others.

        Segments that were appended to since the flush wait for the next retention check.
        """
        log = self._log
        with self._reads:
            count = min(expired_count(log, now_ms), _flushed_count(log))
            count, pinning = pinning_groups(log, count, durable_heads)
        if count == len(log.segments) and not self._roll(now_ms):
            count -= 1
        dropped = log.segments.drop_first(count) if count > 0 else ()
        for segment in dropped:
            segment.close()
        if dropped:
            self._on_removed()
            if log.segments.first.base_offset > log.log_start_offset:
                log.move_log_start(log.segments.first.base_offset)
        return dropped, pinning


def _flushed_count(log: LogState) -> int:
    """The number of segments that end at or below the recovery point."""
    _, *ends = (segment.base_offset for segment in log.segments)
    return sum(end_offset <= log.durability.recovery_point for end_offset in (*ends, log.log_end_offset))
