"""One partition's log, with the methods that the rest of the broker uses.

A log is a sequence of record batches in Kafka's format, in segments with indexes. Together with all its share
partitions it is one append domain. Clients see it up to the high watermark: the end of the last batch that is
not share state. Share state is appended and indexed here, and cut out of all reads by consumers. The log does
not interpret it; `share_records` reads it. All methods, coroutines too, are called on the loop's thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final
from uuid import UUID

from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity
from barnabas.protocol.record_batch import KeyValue, ProducedBatch
from barnabas.protocol.transaction_marker import TransactionEnd
from barnabas.protocol.varint import Buffer, RecordFormatError
from barnabas.runtime.moment import Moment
from barnabas.runtime.stepwise import StepwiseWork
from barnabas.storage.cleaner.log_cleaning import CleanedLog, CleaningPlan, LogCleaning
from barnabas.storage.errors import IndexDamaged, LogClosed, StorageError
from barnabas.storage.flushing.flush import Flusher
from barnabas.storage.format.control_runs import ControlRuns
from barnabas.storage.format.producer_snapshot import ProducerSnapshotEntry
from barnabas.storage.format.share_index import ShareIndexEntry
from barnabas.storage.format.transaction_index import AbortedTransaction
from barnabas.storage.log.appended import Append
from barnabas.storage.log.appender import Appender, CommitPoint
from barnabas.storage.log.pending_append import MarkerAppend, PendingAppend, ProducedAppend, RecordsAppend
from barnabas.storage.log_config import LogConfig
from barnabas.storage.producers.producer_state import ProducerEntry
from barnabas.storage.reading.log_slice import BatchSlice, BatchSpan, LogSlice
from barnabas.storage.reading.offset_lookup import OffsetLookup, TimedOffset
from barnabas.storage.reading.range_reader import RangeReader
from barnabas.storage.reading.reader import Reader
from barnabas.storage.reading.share_record_reader import ShareRecordReader
from barnabas.storage.reading.transaction_lookup import aborted_between
from barnabas.storage.reading.verification import distrust_durable
from barnabas.storage.recovery.log_recovery import load_log
from barnabas.storage.retention.segment_removal import SegmentRemoval
from barnabas.storage.state.log_files import LogPlace
from barnabas.storage.state.log_state import LogState
from barnabas.storage.topic_partition import TopicPartition

__all__ = ["BatchSlice", "BatchSpan", "LogSlice", "PartitionLog", "ShareIndexEntry"]


HIGH_WATERMARK: Final = -1
"""For `delete_records`."""


class PartitionLog:
    """An open log. Times are wall time in ms; offsets called end, watermark or start behave as in Kafka."""

    def __init__(self, state: LogState) -> None:
        self.state: Final = state
        """What its parts share. Others only read it; the properties below are its usual names."""
        self._files_lock = asyncio.Lock()
        self._appender = Appender(state)
        self.append: Final[Callable[[PendingAppend, int], None]] = self._appender.submit
        """Appends what plans itself, at this wall time in ms, in the order of the log.
        Share state gets the offsets that are next here, and batches of another log keep theirs.
        """
        self.hold_until: Final[Callable[[CommitPoint], None]] = self._appender.hold_until
        """Appends are complete, and their records visible, when this object says so, instead of at once."""
        self.commit: Final[Callable[[int], None]] = self._appender.commit
        """What is written below an offset (exclusive) counts, for an object of `hold_until`."""
        self._reader = Reader(state)
        self.read_batches: Final = self._reader.read_batches
        """The batches for a share group; see `Reader.read_batches`."""
        self.flusher: Final = Flusher(state, self._files_lock)
        self._cleaning = LogCleaning(
            state, self._files_lock, flush=self.flush, on_swapped=self._reader.forget_positions
        )
        self.key_ranges: Final = RangeReader(state, self._reader, self._reader.reads)
        self.share_records: Final = ShareRecordReader(state, self._reader.verification, self._reader.reads)
        self._removal = SegmentRemoval(
            state, self._files_lock, self.flusher, roll=self._roll, on_removed=self._reader.forget_positions
        )
        self.pin_listeners: list[Callable[[PartitionLog, frozenset[str]], None]] = []
        """Called with the ids of the share groups whose newest checkpoints keep removable segments or state.
        """
        self.opened_end_offset: Final = state.log_end_offset
        """The log's end after the recovery of this opening: records beyond it are lost."""

    @classmethod
    async def open(
        cls,
        place: LogPlace,
        *,
        leader_epoch: int,
        moment: Moment,
        on_flush_due: Callable[[], None] | None = None,
    ) -> PartitionLog:
        """Opens the log in `place` through recovery, or creates it.

        If the settings promise that all visible records are durable, records that an earlier process left
        written but not durable are synced first. Raises OSError; StorageError; InconsistentTopicId if the
        directory holds another topic's log; and RecordFormatError if the tail holds share state of a version
        that cannot be read.
        """
        state = await load_log(place, leader_epoch=leader_epoch, moment=moment)
        if on_flush_due is not None:
            state.on_flush_due = on_flush_due
        distrust_durable(state)
        log = cls(state)
        if state.log_end_offset > state.durability.unsynced_end_max:
            await log._flush_or_close()
        return log

    @property
    def topic_partition(self) -> TopicPartition:
        return self.state.topic_partition

    @property
    def topic_id(self) -> UUID:
        return self.state.topic_id

    @property
    def directory(self) -> str:
        return self.state.directory

    @property
    def config(self) -> LogConfig:
        return self.state.config

    @config.setter
    def config(self, config: LogConfig) -> None:
        """Altered topic configs take effect at the next append, roll or retention check."""
        self.state.follow(config)

    @property
    def log_start_offset(self) -> int:
        return self.state.log_start_offset

    @property
    def log_end_offset(self) -> int:
        """The end of the last batch of any kind (exclusive). Followers see it, clients do not."""
        return self.state.log_end_offset

    @property
    def high_watermark(self) -> int:
        """The end of the last batch that is not share state (exclusive), at least the log start."""
        return self.state.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """All transactions below it have ended; the high watermark if none is open."""
        return self.state.last_stable_offset

    @property
    def recovery_point(self) -> int:
        """Everything below survives a loss of power, indexes and producer state included."""
        return self.state.durability.recovery_point

    @property
    def durable_offset(self) -> int:
        """All batches below survive a loss of power."""
        return self.state.durability.durable_offset

    @property
    def leader_epoch(self) -> int:
        return self.state.leader_epoch

    @leader_epoch.setter
    def leader_epoch(self, leader_epoch: int) -> None:
        self.state.begin_leader_epoch(leader_epoch)

    @property
    def control_runs(self) -> ControlRuns:
        """The runs of share state, which are holes in the offsets that clients see."""
        return self.state.control_runs

    @property
    def corrupt_batch_count(self) -> int:
        """The number of damaged batches that reads have found since the log was opened."""
        return self._reader.verification.corrupt_batch_count

    @property
    def size_bytes(self) -> int:
        return self.state.segments.size_bytes

    @property
    def segment_count(self) -> int:
        return len(self.state.segments)

    @property
    def slow_write_count(self) -> int:
        return self.state.slow_write_count

    @property
    def offline(self) -> StorageError | None:
        """The error that took the log offline; None while it serves. An offline log must be opened again."""
        return self.state.offline

    def append_produced(
        self,
        records: Buffer,
        batches: Sequence[ProducedBatch],
        now_ms: int,
        *,
        is_verified: bool = False,
        from_zero: bool = False,
    ) -> Append:
        """Appends batches of a client, checked by `validate_produced`. `records` must not change any more.

        The error is an ApiError if the producer is at fault, such as for a sequence out of order. A duplicate
        of an earlier batch is not appended again: its result has the offsets of the first append.

        A transactional batch must follow other batches of its transaction in this log, else the error is
        INVALID_TXN_STATE. `is_verified` lifts this rule: the coordinator has confirmed, with no await since,
        that the partition is part of the producer's open transaction. With `from_zero`, as for transaction
        version 2, the first transactional batch of an unknown producer must have the sequence 0.
        """
        pending = ProducedAppend(records, batches, now_ms, is_verified=is_verified, from_zero=from_zero)
        self._appender.submit(pending, now_ms)
        return pending.appended

    def append_records(
        self, records: Sequence[KeyValue], now_ms: int, *, producer: ProducerIdentity | None = None
    ) -> Append:
        """Appends records of the broker itself, at least one, as one uncompressed batch.

        With `producer` they are part of its transaction, or begin it: the caller must know that it is open.
        The error is INVALID_PRODUCER_EPOCH if a newer epoch has fenced the producer.
        """
        pending = RecordsAppend(records, now_ms, producer)
        self._appender.submit(pending, now_ms)
        return pending.appended

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        *,
        commit: bool,
        now_ms: int,
        transaction_version: int = 0,
    ) -> Append:
        """Ends the producer's transaction in this log, if it has one, and raises its epoch to the given one.

        The error is an ApiError: INVALID_PRODUCER_EPOCH for a late marker. From transaction version 2 on, a
        marker in the epoch of the transaction's batches is late. `coordinator_epoch` is not checked.
        """
        producer = ProducerIdentity(producer_id, producer_epoch)
        end = TransactionEnd(commit, coordinator_epoch)
        pending = MarkerAppend(producer, end, now_ms, transaction_version=transaction_version)
        self._appender.submit(pending, now_ms)
        return pending.appended

    def producer(self, producer_id: int) -> ProducerEntry | None:
        """The producer's entry; None for an unknown producer."""
        return self.state.producers.get(producer_id)

    def open_transactions(self) -> Sequence[tuple[int, int]]:
        """(producer id, first offset) of each open transaction, the oldest first."""
        return self.state.producers.open_transactions.all()

    def active_producers(self) -> Sequence[ProducerSnapshotEntry]:
        """The entries of all known producers, for the search for hanging transactions (KIP-664)."""
        return self.state.producers.to_snapshot()

    def aborted_transactions(self, first_offset: int, upper_offset: int) -> Sequence[AbortedTransaction]:
        """The aborted transactions that overlap [first_offset, upper_offset), by marker. StorageError."""
        self.state.check_online()
        with self._reader.reads:
            return aborted_between(self.state.segments, first_offset, upper_offset)

    def read(
        self,
        offset: int,
        *,
        bytes_max: int,
        upper_offset: int | None = None,
        at_least_one: bool = True,
        with_aborted: bool = False,
    ) -> LogSlice:
        """The slice for a plain Fetch at `offset`; see `Reader.read`. OFFSET_OUT_OF_RANGE, StorageError."""
        reader = self._reader
        try:
            return reader.read(
                offset,
                bytes_max=bytes_max,
                upper_offset=upper_offset,
                at_least_one=at_least_one,
                with_aborted=with_aborted,
            )
        except (OSError, RecordFormatError) as error:
            raise reader.reads.error_of(error) from error

    def offset_behind_damage(self, offset: int) -> int:
        """The offset where to go on after `read` or `read_batches` has raised CorruptBatch at `offset`; more
        damage may follow. Raises StorageError.
        """
        with self._reader.reads:
            return self._reader.verification.offset_behind_damage(offset)

    def available_bytes(self, offset: int, *, upper_offset: int | None = None, enough: int) -> int:
        """The bytes that a Fetch at `offset` could get, counted up to `enough`. Raises as `read` does."""
        reader = self._reader
        try:
            return reader.available_bytes(offset, upper_offset=upper_offset, enough=enough)
        except (OSError, RecordFormatError) as error:
            raise reader.reads.error_of(error) from error

    def timestamp_at(self, offset: int) -> int | None:
        """The time of the batch at `offset` in ms; see `Reader.timestamp_at`. Raises as `read` does."""
        with self._reader.reads:
            return self._reader.timestamp_at(offset)

    async def offset_for_timestamp(self, timestamp_ms: int, work: StepwiseWork) -> TimedOffset | None:
        """(timestamp, offset) of the first record at or after `timestamp_ms`; None if there is none.

        `work` runs the long parts. Raises StorageError, also if the log is closed meanwhile.
        """
        self.state.check_online()
        with self._reader.reads:
            return await OffsetLookup(self.state, self._reader, work).first_from(timestamp_ms)

    async def max_timestamp(self, work: StepwiseWork) -> TimedOffset | None:
        """(timestamp, offset) of the record with the largest timestamp; None without any.

        See `offset_for_timestamp`.
        """
        self.state.check_online()
        with self._reader.reads:
            return await OffsetLookup(self.state, self._reader, work).latest()

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """(leader epoch, end offset) of the newest epoch up to `leader_epoch`; (-1, -1) if unknown."""
        found, end_offset = self.state.leader_epochs.end_offset_for(leader_epoch, self.high_watermark)
        return found, min(end_offset, self.high_watermark)

    @property
    def latest_leader_epoch(self) -> int:
        """The epoch of the last record of any kind; -1 without any, or if it is unknown."""
        return self.state.leader_epochs.epoch_at(self.log_end_offset - 1)

    def leader_epoch_at(self, offset: int) -> int:
        """The epoch of the record at `offset`; -1 if it is unknown."""
        return self.state.leader_epochs.epoch_at(offset)

    def delete_records(self, before_offset: int) -> int:
        """Moves the log start up to `before_offset` (exclusive; -1 for the high watermark) and returns it.

        OFFSET_OUT_OF_RANGE beyond the high watermark. The next retention check removes the files. The move is
        not durable yet; `LogDirectory.delete_records` makes a durable one.
        """
        offset = self.start_after_deletion(before_offset)
        if offset > self.log_start_offset:
            self.state.move_log_start(offset)
        return offset

    def start_after_deletion(self, before_offset: int) -> int:
        """The result of `delete_records`, without moving the log start. Raises the same errors."""
        self.state.check_online()
        end_offset = self.high_watermark
        offset = end_offset if before_offset == HIGH_WATERMARK else before_offset
        if not 0 <= offset <= end_offset:
            raise ApiError(ErrorCode.offset_out_of_range, f"{offset} is not below {end_offset}.")
        return max(offset, self.log_start_offset)

    async def enforce_retention(self, now_ms: int) -> int:
        """Removes the segments below the log start, too old or beyond retention.bytes; returns their number.

        Raises StorageError. The log is offline then if files could not be created or removed.
        """
        count, pinning = await self._removal.remove_expired(now_ms)
        self._tell_pinned(pinning)
        return count

    async def plan_cleaning(self, cleaned_offset: int, now_ms: int) -> CleaningPlan:
        """The plan for the cleaner; `cleaned_offset` is the end of the last compaction. OSError.

        StorageError if an index is damaged; the log is offline then.
        """
        try:
            return await self._cleaning.plan(cleaned_offset, now_ms)
        except IndexDamaged as error:
            raise self.state.go_offline(error) from error

    async def clean(self, plan: CleaningPlan, now_ms: int) -> CleanedLog | None:
        """Cleans the log by the plan, in slices in threads; None if the log was closed or changed meanwhile.

        Raises OSError, with the log unchanged or partly cleaned; RecordFormatError where it is damaged;
        StorageError, after which it is offline.
        """
        try:
            return await self._cleaning.clean(plan, now_ms)
        except IndexDamaged as error:
            raise self.state.go_offline(error) from error

    def stop_cleaning(self) -> None:
        """Ends a cleaning at its next slice. No other one begins until the log is opened again."""
        self._cleaning.stop()

    def renew_checkpoints_below(self, offset: int) -> None:
        """Asks the share groups whose newest checkpoints lie below `offset` to write new ones."""
        live = self.state.share_heads.live()
        self._tell_pinned(frozenset(group_id for group_id, head in live.items() if head < offset))

    def expire_producers(self, now_ms: int) -> None:
        """Forgets producers that have been idle for producer.id.expiration.ms; `now_ms` is monotonic."""
        self.state.producers.expire(now_ms, self.state.storage.producer_id_expiration_ms)

    def roll_if_due(self, now_ms: int) -> bool:
        """Begins a new segment if the active one's first record is older than segment.ms; StorageError."""
        state = self.state
        state.check_online()
        active = state.segments.active
        if active.waited_ms(now_ms, now_ms) <= state.config.roll_ms(active.log_path):
            return False
        return self._roll(now_ms)

    @property
    def needs_flush(self) -> bool:
        """Whether anything changed since the last flush."""
        return self.flusher.needs_flush

    async def flush(self) -> None:
        """Makes everything appended so far durable and moves the recovery point there; StorageError."""
        await self.flusher.flush()

    async def _flush_or_close(self) -> None:
        try:
            await self.flush()
        except StorageError:
            await self.close(clean=False)
            raise

    async def close(self, *, clean: bool = True) -> None:
        """Refuses further appends, waits for those under way and closes all files.

        A clean close flushes first, so that the next open has nothing to recover. Raises StorageError if that
        fails; the files are closed in every case.
        """
        state = self.state
        reason = LogClosed(f"{self.topic_partition.directory_name} is closed.")
        self._appender.refuse(reason)
        self._cleaning.stop()
        await self._cleaning.stopped()
        if not clean:
            self._appender.abandon(reason)
        await self._appender.drained()
        self._appender.abandon(reason)  # what is written and does not count yet
        try:
            if clean and state.offline is None:
                state.segments.active.note_max_timestamp()
                if self.needs_flush:
                    await self.flush()
        finally:
            async with self._files_lock:
                state.offline = state.offline or reason
                self._reader.forget_positions()
                for segment in state.segments:
                    segment.close()
            await self._removal.close()

    def _roll(self, now_ms: int) -> bool:
        state = self.state
        try:
            return self._appender.roll(now_ms)
        except OSError as error:
            raise state.refusal_if_full(error) or state.go_offline(error) from error

    def _tell_pinned(self, group_ids: frozenset[str]) -> None:
        if group_ids:
            for listener in self.pin_listeners:
                listener(self, group_ids)

    def when_moved(self, listener: Callable[[], None]) -> None:
        """Calls this listener from now on after the high watermark or the log start moved."""
        self.state.on_moved = listener
