"""When each log is to be flushed: `log.flush`, `log.flush.interval.ms` and `.bytes`, a topic's `flush.ms`.

A log that changed is due when its interval is over since it was due before, when `flush_bytes` of it are not
safe, and when it has rolled. With log.flush=never the latter alone counts, unless the topic has a `flush.ms`.
The interval asks for a sync, since that is what keeps records safe. A flush, which moves the recovery point
too, costs several times as much for many logs of a few records a second: it comes in the place of every so
many syncs (log.flush.offset.checkpoint.interval.ms), or of one that finds many bytes to scan after a crash.
Pure: times are the caller's, in ms, of one clock. What happens before a reply (log.flush=always,
`flush.messages`) is the appender's subject.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Generic, NamedTuple, Protocol, TypeVar
from weakref import WeakKeyDictionary

from barnabas.storage.log_config import FlushPolicy, LogConfig, StorageConfig

WAKE_MS_MIN = 10
"""A topic with a shorter `flush.ms` is flushed this often."""
WAKE_MS_MAX = 1000
"""The schedule is looked at this often at least."""
_GOLDEN_RATIO = (math.sqrt(5) - 1) / 2
"""Multiples of it, without what stands before the point, lie as far apart as so many numbers can."""
_EARLY_MS = 5
"""Timers may end a little early; waiting another round for that would double the interval."""


class FlushedLog(Protocol):
    """What is asked of a log."""

    @property
    def config(self) -> LogConfig: ...

    @property
    def needs_sync(self) -> bool: ...

    @property
    def needs_flush(self) -> bool: ...

    @property
    def has_rolled(self) -> bool: ...

    @property
    def unflushed_bytes(self) -> int: ...

    @property
    def recovery_scan_bytes(self) -> int: ...


Log = TypeVar("Log", bound=FlushedLog)


class Due(NamedTuple, Generic[Log]):
    """What is to be done now, no log in both."""

    syncs: list[Log]
    flushes: list[Log]


class FlushSchedule(Generic[Log]):
    """Remembers when each log was due, as long as the log is open."""

    def __init__(self, storage: StorageConfig) -> None:
        self._storage = storage
        self._taken_ms: WeakKeyDictionary[Log, float] = WeakKeyDictionary()
        self._flushed_ms: WeakKeyDictionary[Log, float] = WeakKeyDictionary()
        """When its recovery point moved, or would have moved: logs that were first due at one time are not to
        come at one time ever after."""
        self._first_due_count = 0

    def take_all(self, logs: Iterable[Log], now_ms: float) -> list[Log]:
        """Those that changed and will be due at some time, to be flushed now."""
        taken = [log for log in logs if self._is_due(log, math.inf)]
        for log in taken:
            self._taken_ms[log] = self._flushed_ms[log] = now_ms
        return taken

    def take_due(self, logs: Iterable[Log], now_ms: float) -> Due[Log]:
        """Those that are due now, for which it counts as done from here on."""
        due: Due[Log] = Due([], [])
        for log in logs:
            if self._is_due(log, now_ms):
                if self._is_recovery_point_due(log, now_ms):
                    due.flushes.append(log)
                    self._flushed_ms[log] = now_ms
                elif log.needs_sync:
                    due.syncs.append(log)
                self._taken_ms[log] = now_ms
        return due

    def wake_ms(self, logs: Iterable[Log]) -> float:
        """How long to wait before looking again."""
        intervals = (self._interval_ms(log) for log in logs)
        shortest_ms = min((one for one in intervals if one is not None), default=WAKE_MS_MAX)
        return max(WAKE_MS_MIN, min(shortest_ms, self._storage.flush_interval_ms, WAKE_MS_MAX))

    def _is_due(self, log: Log, now_ms: float) -> bool:
        if not log.needs_flush:
            return False
        if log.has_rolled or self._has_many_bytes(log):
            return True
        interval_ms = self._interval_ms(log)
        taken_ms = self._taken_ms.get(log)
        return interval_ms is not None and (taken_ms is None or now_ms + _EARLY_MS >= taken_ms + interval_ms)

    def _is_recovery_point_due(self, log: Log, now_ms: float) -> bool:
        storage = self._storage
        if log.has_rolled or log.recovery_scan_bytes >= storage.recovery_scan_bytes_max:
            return True
        interval_ms = storage.recovery_point_interval_ms
        if log not in self._flushed_ms:
            self._flushed_ms[log] = now_ms - interval_ms * (self._first_due_count * _GOLDEN_RATIO % 1)
            self._first_due_count += 1
        return now_ms + _EARLY_MS >= self._flushed_ms[log] + interval_ms

    def _has_many_bytes(self, log: Log) -> bool:
        storage = self._storage
        return storage.flush is not FlushPolicy.NEVER and log.unflushed_bytes >= storage.flush_bytes

    def _interval_ms(self, log: Log) -> int | None:
        if log.config.flush_ms is not None:
            return log.config.flush_ms
        return None if self._storage.flush is FlushPolicy.NEVER else self._storage.flush_interval_ms
