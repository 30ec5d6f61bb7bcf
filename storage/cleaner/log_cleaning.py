"""Cleans one log: assesses it, writes new segments in slices, and swaps them in.

The log continues to serve meanwhile. Only the swap excludes flushes and retention. Readers are not disturbed
by it: first the new segment replaces the old ones in memory, with handles that stay valid. An error before
the swap leaves the log unchanged. Once the new segment counts, or if that is uncertain, an error takes the
log offline, and recovery completes the swap.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.cleaner.assessment import (
    DirtyPart,
    StateBytes,
    assess_dirty,
    assess_state,
    choose_groups,
    dirty_sources,
    first_dirty_offset,
    group_sources,
)
from barnabas.storage.cleaner.compaction import Compaction
from barnabas.storage.cleaner.mapping import fill_offset_map
from barnabas.storage.cleaner.offset_map import OffsetMap
from barnabas.storage.cleaner.rewriting import rewrite
from barnabas.storage.cleaner.slices import Work, run_in_slices
from barnabas.storage.cleaner.sources import (
    Source,
    cleanable_sources,
    first_timestamp_ms,
    read_share_index,
)
from barnabas.storage.cleaner.transactions import CleanedTransactions
from barnabas.storage.filesystem import File, FileSystem
from barnabas.storage.format.transaction_index import AbortedTransaction
from barnabas.storage.reading.transaction_lookup import aborted_between
from barnabas.storage.recovery.checksum_recovery import write_index_checksums
from barnabas.storage.recovery.share_head_recovery import prove_share_heads
from barnabas.storage.segments import swap
from barnabas.storage.segments.segment import Segment
from barnabas.storage.state.log_state import LogState, new_segment


class CleaningPlan(NamedTuple):
    """The possible cleaning of a log. `sources` are all segments that may be cleaned."""

    sources: Sequence[Source]
    state_bytes: Sequence[StateBytes]
    state_end_offset: int
    """The earliest share offset at the time of the plan: no group needs share state below it."""
    worth: Sequence[bool]
    """For each source, whether it is to be rewritten for its share state alone."""
    pinning_offset: int
    """A group's newest checkpoint below it keeps much removable share state; 0 if none does."""
    dirty: DirtyPart | None
    """The part with the keys of a compaction; None unless the topic is compacted."""

    @property
    def is_compaction_due(self) -> bool:
        return self.dirty is not None and self.dirty.is_due

    @property
    def is_due(self) -> bool:
        return self.is_compaction_due or any(self.worth)


_NOTHING_TO_DO = CleaningPlan((), (), 0, (), 0, None)


class CleanedLog(NamedTuple):
    """The result of a cleaning. `compacted_offset` is the start of the next compaction; None without one."""

    read_bytes: int = 0
    written_bytes: int = 0
    compacted_offset: int | None = None


class LogCleaning:
    """The cleaner's part of one log. Used on the loop's thread only, one cleaning at a time."""

    __slots__ = ("_files_lock", "_flush", "_lock", "_log", "_on_swapped", "_state_bytes", "_stop")

    def __init__(
        self,
        log: LogState,
        files_lock: asyncio.Lock,
        *,
        flush: Callable[[], Awaitable[None]],
        on_swapped: Callable[[], None],
    ) -> None:
        self._log = log
        self._files_lock = files_lock
        """Held during every change of the log's files except appends."""
        self._flush = flush
        self._on_swapped = on_swapped
        self._lock = asyncio.Lock()
        self._stop = asyncio.Event()
        self._state_bytes: dict[Segment, StateBytes] = {}
        """The share state of each closed segment, counted as if no group needed it. It never changes."""

    async def plan(self, cleaned_offset: int, now_ms: int) -> CleaningPlan:
        """The plan for a cleaning; `cleaned_offset` is the end of the last compaction.

        Raises OSError, and RecordFormatError where share state is damaged.
        """
        sources = [] if self._stop.is_set() else cleanable_sources(self._log)
        if not sources:
            return _NOTHING_TO_DO
        try:
            return await self._assess(sources, cleaned_offset, now_ms)
        except OSError:
            if self._is_current(sources):
                raise
            return _NOTHING_TO_DO  # the files were removed meanwhile

    async def _assess(self, sources: Sequence[Source], cleaned_offset: int, now_ms: int) -> CleaningPlan:
        log = self._log
        async with self._files_lock:
            if not self._is_current(sources):
                return _NOTHING_TO_DO
            await prove_share_heads(log)
        state_end_offset = self._state_end_offset()
        state_bytes = await self._measure_state(sources, state_end_offset)
        assessment = assess_state(sources, state_bytes)
        dirty = None
        if log.config.compact_enabled:
            dirty = await self._find_dirty_part(sources, cleaned_offset, now_ms)
        return CleaningPlan(
            sources, state_bytes, state_end_offset, assessment.worth, assessment.pinning_offset, dirty
        )

    async def clean(self, plan: CleaningPlan, now_ms: int) -> CleanedLog | None:
        """Cleans the log by the plan; None if the log was closed or changed meanwhile.

        Raises OSError, with the log unchanged or partly cleaned; StorageError, after which it is offline; and
        RecordFormatError where it is damaged.
        """
        async with self._lock:
            compaction, compacted_offset = None, None
            if plan.is_compaction_due:
                compaction = await self._map_keys(plan, now_ms)
                if compaction is None:
                    return None
                compacted_offset = compaction.offsets.end_offset
            cleaned = CleanedLog(compacted_offset=compacted_offset)
            groups = self._groups(plan, compaction)
            if not await self._make_heads_durable(groups):
                return None
            for group in groups:
                covering = compaction if _covers(compaction, group[0]) else None
                written_bytes = await self._clean_group(group, plan.state_end_offset, covering)
                if written_bytes is None:
                    return None
                cleaned = cleaned._replace(
                    read_bytes=cleaned.read_bytes + sum(source.size_bytes for source in group),
                    written_bytes=cleaned.written_bytes + written_bytes,
                )
        return cleaned

    def stop(self) -> None:
        """Ends the cleaning under way at its next slice. Later ones end at once."""
        self._stop.set()

    async def stopped(self) -> None:
        """Returns once no cleaning is under way. `stop` must be called before."""
        async with self._lock:
            return

    async def _make_heads_durable(self, groups: Sequence[Sequence[Source]]) -> bool:
        """Flushes newer checkpoints, so that a crash cannot lose those that justify the removal of older
        ones.

        Returns whether the log still serves.
        """
        log = self._log
        if groups and log.durability.durable_offset < log.log_end_offset:
            if not all(map(self._is_current, groups)):
                return False
            await self._flush()
        return True

    async def _measure_state(self, sources: Sequence[Source], state_end_offset: int) -> list[StateBytes]:
        log = self._log
        segments = {source.segment for source in sources}
        self._state_bytes = {
            segment: found for segment, found in self._state_bytes.items() if segment in segments
        }
        measured: list[StateBytes] = []
        for source in sources:
            whole = self._state_bytes.get(source.segment)
            if whole is None:
                whole = await log.filesystem.run(_measure, log.filesystem, source, source.end_offset)
                self._state_bytes[source.segment] = whole
            if source.end_offset <= state_end_offset or not whole.total:
                measured.append(whole)
            elif source.base_offset >= state_end_offset:
                measured.append(StateBytes(whole.total, 0))
            else:
                part = await log.filesystem.run(_measure, log.filesystem, source, state_end_offset)
                measured.append(part._replace(total=whole.total))
        return measured

    def _state_end_offset(self) -> int:
        """The earliest share offset: no group needs share state below it."""
        return self._log.share_heads.earliest_offset(self._log.log_end_offset)

    async def _find_dirty_part(
        self, sources: Sequence[Source], cleaned_offset: int, now_ms: int
    ) -> DirtyPart:
        log = self._log
        first_dirty = first_dirty_offset(cleaned_offset, log.log_start_offset, log.log_end_offset)
        undecided_offset = log.producers.open_transactions.first_offset
        if undecided_offset is None:
            undecided_offset = log.log_end_offset
        dirty = dirty_sources(sources, first_dirty, undecided_offset, log.config, now_ms)
        timestamps_ms: dict[int, int] = {}
        for source in dirty:
            segment = source.segment
            if segment.first_timestamp_ms < 0:
                segment.first_timestamp_ms = await log.filesystem.run(
                    first_timestamp_ms, log.filesystem, source
                )
            timestamps_ms[source.base_offset] = segment.first_timestamp_ms
        return assess_dirty(sources, dirty, first_dirty, log.config, now_ms, timestamps_ms)

    async def _map_keys(self, plan: CleaningPlan, now_ms: int) -> Compaction | None:
        """Reads the keys of the dirty part; None if the log was closed meanwhile."""
        log, dirty = self._log, plan.dirty
        assert dirty is not None, "a compaction is due"
        offsets = OffsetMap(log.storage.cleaner_dedupe_buffer_bytes)
        sources = [
            source
            for source in plan.sources
            if dirty.first_dirty_offset < source.end_offset <= dirty.end_offset
        ]
        work = fill_offset_map(
            log.filesystem,
            sources,
            dirty.first_dirty_offset,
            offsets,
            CleanedTransactions(self._aborted_from(dirty.first_dirty_offset)),
            slice_bytes=log.storage.cleaner_slice_bytes,
        )
        if not await self._run(work):
            return None
        producers = {entry.producer_id: entry for entry in log.producers.to_snapshot()}
        transactions = CleanedTransactions(self._aborted_from(log.log_start_offset))
        return Compaction(offsets, now_ms, log.config.delete_retention_ms, producers, transactions)

    def _aborted_from(self, offset: int) -> list[AbortedTransaction]:
        log = self._log
        return aborted_between(log.segments, offset, log.log_end_offset)

    def _groups(self, plan: CleaningPlan, compaction: Compaction | None) -> list[Sequence[Source]]:
        """The groups of segments to rewrite: all that the compaction covers, and those in `worth`.

        A group is either covered or not, because a partly compacted segment could only be compacted again as
        a whole.
        """
        log = self._log
        state = {
            source.base_offset: measured
            for source, measured in zip(plan.sources, plan.state_bytes, strict=True)
        }
        covered = [source for source in plan.sources if _covers(compaction, source)]
        worth = {
            source.base_offset
            for source, is_worth in zip(plan.sources, plan.worth, strict=True)
            if is_worth or _covers(compaction, source)
        }
        others = plan.sources[len(covered) :]
        groups = [*group_sources(covered, state, log.config), *group_sources(others, state, log.config)]
        return choose_groups(groups, worth, state)

    async def _clean_group(
        self, group: Sequence[Source], state_end_offset: int, compaction: Compaction | None
    ) -> int | None:
        """Makes one segment of the group; returns its size in bytes, None if the group has left the log."""
        log = self._log
        segment = new_segment(log, group[0].base_offset, group[-1].segment.created_ms)
        await self._discard(segment)  # files of an earlier attempt
        work = rewrite(
            log.filesystem,
            group,
            segment,
            state_end_offset=state_end_offset,
            compaction=compaction,
            slice_bytes=log.storage.cleaner_slice_bytes,
        )
        try:
            if await self._run(work):
                async with self._files_lock:
                    if self._is_current(group):
                        assert state_end_offset <= self._state_end_offset(), state_end_offset
                        await self._swap_in(group, segment)
                        return segment.size_bytes
        except (OSError, RecordFormatError):
            with suppress(OSError):
                await self._discard(segment)
            if self._is_current(group):
                raise
            return None  # its files were removed meanwhile
        await self._discard(segment)
        return None

    async def _discard(self, segment: Segment) -> None:
        log = self._log
        await log.filesystem.run(swap.discard, log.filesystem, log.directory, segment.base_offset)

    def _is_current(self, sources: Sequence[Source]) -> bool:
        """Whether the log still serves, and these segments are still part of it."""
        log = self._log
        return (
            log.offline is None
            and not self._stop.is_set()
            and all(log.segments.floor(source.base_offset) is source.segment for source in sources)
        )

    async def _swap_in(self, group: Sequence[Source], segment: Segment) -> None:
        log = self._log
        file = await self._publish(segment)
        segment.pin()  # its files have other names until the swap is complete
        segment.adopt_file(file)
        log.segments.replace([source.segment for source in group], segment)
        for source in group:
            source.segment.close()
        self._on_swapped()
        others = [source.base_offset for source in group[1:]]
        try:
            await log.filesystem.run(swap.finish, log.filesystem, log.directory, segment.base_offset, others)
        except OSError as error:
            raise log.go_offline(error) from error
        finally:
            segment.unpin()
        await write_index_checksums(log)

    async def _publish(self, segment: Segment) -> File:
        """Makes the new segment count; after an error, makes sure that it does not."""
        log = self._log
        try:
            return await log.filesystem.run(swap.publish, log.filesystem, log.directory, segment.base_offset)
        except OSError as error:
            try:
                await log.filesystem.run(swap.take_back, log.filesystem, log.directory, segment.base_offset)
            except OSError:
                raise log.go_offline(error) from error
            raise

    async def _run(self, work: Work) -> bool:
        storage = self._log.storage
        return await run_in_slices(
            self._log.filesystem,
            work,
            self._stop,
            bytes_per_second=storage.cleaner_io_bytes_per_second,
        )


def _covers(compaction: Compaction | None, source: Source) -> bool:
    return compaction is not None and compaction.covers(source.base_offset)


def _measure(filesystem: FileSystem, source: Source, end_offset: int) -> StateBytes:
    """The share state below `end_offset`."""
    size_bytes, has_tombstone = read_share_index(filesystem, source).cleanable_below(end_offset)
    return StateBytes(size_bytes, size_bytes, has_tombstone)
