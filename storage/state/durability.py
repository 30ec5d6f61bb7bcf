"""What of one log survives a loss of power.

Below the durable offset the records do. Below the recovery point, which follows it, the rest does as well:
indexes, producers and leader epochs, so that recovery trusts them there. Recovery says where both begin. The
appender counts what it adds; the flusher, and an append that waits for its own fsync, move them. Pure.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Durability:
    """The durable part of a log, and how much was appended beyond it. Both offsets are exclusive."""

    recovery_point: int
    """Everything below survives a loss of power, indexes and producer state included."""
    durable_offset: int = field(init=False, default=0)
    """All batches below survive a loss of power. Their index entries may not yet, until the recovery point
    moves."""
    unsynced_end_max: int = field(init=False, default=0)
    """Appends up to this end may be complete without an fsync. With log.flush=always it is the durable
    offset: each write is synced."""
    appended_bytes: int = field(init=False, default=0)
    """Since the log was opened; the appender counts them."""
    synced_bytes: int = field(init=False, default=0)
    """The `appended_bytes` at the begin of the last sync or flush."""
    directory_changed: bool = False
    """Whether files were created, or removed again, since the directory was last synced."""
    _directory_synced: bool = field(init=False, default=False)
    """False until the first sync: an earlier process may have been killed before the names of its new files
    were durable."""
    _flushed_bytes: int = field(init=False, default=0)
    """The `appended_bytes` at the begin of the last flush."""
    _unsynced_offsets_max: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.note_durable(self.recovery_point)

    @property
    def unflushed_bytes(self) -> int:
        """Appended since records were last made durable by a sync or a flush."""
        return self.appended_bytes - self.synced_bytes

    @property
    def recovery_scan_bytes(self) -> int:
        """Appended since the recovery point moved, or the log was opened."""
        return self.appended_bytes - self._flushed_bytes

    def allow_unsynced(self, offsets_max: int) -> None:
        """From now on this many offsets beyond the durable ones may be appended without an fsync."""
        self._unsynced_offsets_max = offsets_max
        self.unsynced_end_max = self.durable_offset + offsets_max

    def note_durable(self, end_offset: int) -> None:
        """All batches below `end_offset` survive a loss of power."""
        self.durable_offset = max(self.durable_offset, end_offset)
        self.unsynced_end_max = self.durable_offset + self._unsynced_offsets_max

    @contextmanager
    def syncing(self, log_end_offset: int) -> Generator[bool]:
        """Around a sync, after which all records are durable; yields whether it must sync the directory."""
        appended_bytes = self.appended_bytes
        with_directory = self.directory_changed or not self._directory_synced
        self.directory_changed = False
        try:
            yield with_directory
        except BaseException:
            self.directory_changed |= with_directory
            raise
        self._directory_synced = True
        self.synced_bytes = appended_bytes
        self.note_durable(log_end_offset)

    def move_recovery_point(self, end_offset: int) -> None:
        """Ends a flush of everything below `end_offset`, the log's end at its sync."""
        self.recovery_point = end_offset
        self._flushed_bytes = self.synced_bytes
