"""The state of one log, shared by the parts that append to it, read it, flush it and shorten it.

It is changed on the loop's thread only, between awaits. Work in threads gets its input as arguments.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from barnabas.protocol.errors import without_frames
from barnabas.runtime.logging import get_logger
from barnabas.storage.errors import DiskFull, LogOffline, StorageError
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.format.control_runs import ControlRuns
from barnabas.storage.format.leader_epochs import LeaderEpochs
from barnabas.storage.key_buckets import LogKeyBuckets
from barnabas.storage.log_config import FlushPolicy, LogConfig, StorageConfig
from barnabas.storage.producers.producer_state import ProducerState
from barnabas.storage.segments.segment import Segment
from barnabas.storage.segments.segments import Segments
from barnabas.storage.share.share_heads import ShareHeads
from barnabas.storage.state.durability import Durability
from barnabas.storage.state.log_files import LogPlace
from barnabas.storage.state.newest_batches import NewestBatches
from barnabas.storage.state.producer_snapshots import ProducerSnapshots
from barnabas.storage.state.shared_parts import SharedParts
from barnabas.storage.topic_partition import TopicPartition

_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

logger = get_logger("log")


def _nothing() -> None:
    """The default listener."""


@dataclass(slots=True, kw_only=True, eq=False)
class LogState:
    """The parts of one open log. Offsets named end or watermark are exclusive; the appender moves them."""

    filesystem: FileSystem
    directory: str
    topic_partition: TopicPartition
    topic_id: UUID
    config: LogConfig
    storage: StorageConfig
    shared: SharedParts
    leader_epoch: int = field(init=False)
    segments: Segments
    durability: Durability
    producers: ProducerState
    producer_snapshots: ProducerSnapshots
    leader_epochs: LeaderEpochs
    control_runs: ControlRuns
    share_heads: ShareHeads
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    key_buckets: LogKeyBuckets = field(init=False)
    newest: NewestBatches = field(init=False)

    offline: StorageError | None = None
    """The error that took the log offline. It is kept; copies of it are raised."""
    slow_write_count: int = 0
    """Writes that took longer than `append_slow_ms`."""
    first_unstable_offset: int | None = None
    """The last stable offset while a transaction is open, else None: the end of the last batch before the
    oldest open transaction that is not share state."""
    is_holding: bool = False
    """Whether the last batches do not count yet, see `CommitPoint`."""
    index_checksums: bytes | None = None
    """The content of the file with the checksums of the index files; None without one."""
    on_moved: Callable[[], None] = _nothing
    """Called after the high watermark or the log start moved."""
    on_offline: Callable[[], None] = _nothing
    """Called when the log has gone offline."""
    on_flush_due: Callable[[], None] = _nothing
    """Called when the log should be flushed before the interval is over."""

    def __post_init__(self) -> None:
        self.follow(self.config)
        self.key_buckets = LogKeyBuckets(self.shared.key_buckets)
        self.newest = NewestBatches(self.shared.kept_batches)

    def follow(self, config: LogConfig) -> None:
        """The topic has these settings from now on."""
        self.config = config
        is_always = self.storage.flush is FlushPolicy.ALWAYS
        self.durability.allow_unsynced(0 if is_always else config.flush_messages - 1)

    def check_online(self) -> None:
        """Raises a StorageError with the cause if the log is offline."""
        if self.offline is not None:
            raise without_frames(self.offline)

    def go_offline(self, cause: Exception) -> StorageError:
        """Fences the log for good: only recovery can find out the content of the disk.

        Returns the error to raise, or to fail an append with.
        """
        self.shared.full_disk.met(cause)
        if self.offline is None:
            offline = LogOffline(f"{self.topic_partition.directory_name}: {cause}")
            offline.__cause__ = cause
            self.offline = without_frames(offline)
            self.shared.offline_logs.add(self.topic_partition)
            self.signal(self.on_offline)
        return without_frames(self.offline)

    def refusal_if_full(self, cause: Exception) -> DiskFull | None:
        """For the metadata log, which stays online on a full disk (`outlives_full_disk`): the error to raise
        if the disk is full. None for every other log and every other cause: the log must go offline.

        Nothing of the failed write may be left when it is raised.
        """
        self.shared.full_disk.met(cause)
        is_full = isinstance(cause, OSError) and cause.errno in _NO_ROOM
        if is_full and self.config.outlives_full_disk and self.offline is None:
            return DiskFull(f"{self.topic_partition.directory_name}: {cause}")
        return None

    def signal(self, listener: Callable[[], None]) -> None:
        """Calls a listener. Its exception is logged, so that the log completes its own work."""
        try:
            listener()
        except Exception as error:
            logger.error(
                "a listener of a log failed", log=self.topic_partition.directory_name, exc_info=error
            )

    def begin_leader_epoch(self, leader_epoch: int) -> None:
        """Appends from now on belong to this epoch, which the next flush writes to the disk.

        An epoch that is not newer than the log's latest one adds no entry.
        """
        self.leader_epoch = leader_epoch
        if leader_epoch > self.leader_epochs.latest_leader_epoch:
            self.leader_epochs.assign(leader_epoch, self.log_end_offset)

    @property
    def last_stable_offset(self) -> int:
        """All transactions below it have ended; the high watermark if none is open."""
        unstable = self.first_unstable_offset
        if unstable is None:
            return self.high_watermark
        return min(max(unstable, self.log_start_offset), self.high_watermark)

    def unstable_of_producers(self) -> int | None:
        """The `first_unstable_offset` that follows from the open transactions.

        While the log is opened this may read older share indexes, and raise their errors. Transactions that
        begin later need no index, because their offsets are above all runs that are not loaded.
        """
        first_offset = self.producers.open_transactions.first_offset
        return None if first_offset is None else self.control_runs.previous_data_offset(first_offset - 1) + 1

    def roll(self, now_ms: int) -> None:
        """Begins a new segment at the end of the log; raises OSError."""
        segment = new_segment(self, self.log_end_offset, now_ms)
        try:
            segment.create_files()
        except OSError as error:
            self._take_back(segment, error)
            raise
        self.segments.active.note_max_timestamp()
        self.segments.roll(segment)
        self.durability.directory_changed = True
        self.producer_snapshots.note_roll(self.log_end_offset, self.producers)
        self.share_heads.changed |= bool(self.share_heads.live())
        self.signal(self.on_flush_due)

    def _take_back(self, segment: Segment, cause: OSError) -> None:
        """Removes the files of a segment that could not be created; if that fails, the log goes offline.

        Otherwise the log would continue beyond the base offset of that segment, and recovery would expect the
        later records in it.
        """
        self.durability.directory_changed = True
        try:
            segment.remove_files()
        except OSError:
            self.go_offline(cause)

    def move_log_start(self, offset: int) -> None:
        """Moves the log start up; retention removes the files."""
        assert self.log_start_offset <= offset <= self.log_end_offset, (offset, self.log_start_offset)
        self.log_start_offset = offset
        self.high_watermark = max(self.high_watermark, offset)
        # Those of its segment stay: a batch in flight may begin in front of the log start, and counts whole.
        self.control_runs.drop_below(self.segments.floor(offset).base_offset)
        self.leader_epochs.truncate_from_start(offset)
        self.signal(self.on_moved)


def new_segment(log: LogPlace | LogState, base_offset: int, created_ms: int) -> Segment:
    """A segment of the log. Its files are not touched."""
    return Segment(
        log.filesystem,
        log.directory,
        base_offset,
        index_interval_bytes=log.config.index_interval_bytes,
        open_files=log.shared.open_files,
        damaged_indexes=log.shared.damaged_indexes,
        created_ms=created_ms,
    )
