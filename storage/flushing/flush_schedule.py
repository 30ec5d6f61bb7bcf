"""When each log is flushed: `log.flush`, `log.flush.interval.ms` and `.bytes`, a topic's `flush.ms`.

A changed log is due when its interval has passed since it was last due, when `flush_bytes` of it are not
durable, and when it has rolled. With log.flush=never only a roll counts, unless the topic has a `flush.ms`.
The interval asks for a sync, which is enough to keep the records. A flush, which also moves the recovery
point, costs several times as much for many logs with a few records a second. It replaces a sync when
log.flush.offset.checkpoint.interval.ms is over, or when recovery would have to scan many bytes. Pure: times
are arguments, in ms of one clock. An fsync before a reply (log.flush=always, `flush.messages`) is done by the
appender.
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
"""The longest time between two checks of the schedule."""
_GOLDEN_RATIO = (math.sqrt(5) - 1) / 2
"""The fractional parts of its multiples are spread evenly between 0 and 1, for any number of multiples."""
_EARLY_MS = 5
"""Timers may end a little early; without this tolerance the interval would double then."""


class FlushedLog(Protocol):
    """The properties of a log that the schedule uses."""

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
    """The logs to sync and the logs to flush now; no log is in both."""

    syncs: list[Log]
    flushes: list[Log]


class FlushSchedule(Generic[Log]):
    """Remembers when each log was due, as long as the log is open."""

    def __init__(self, storage: StorageConfig) -> None:
        self._storage = storage
        self._taken_ms: WeakKeyDictionary[Log, float] = WeakKeyDictionary()
        self._flushed_ms: WeakKeyDictionary[Log, float] = WeakKeyDictionary()
        """The last flush of each log. The first value is spread over the interval, so that logs that were
        first due together are not flushed together ever after."""
        self._first_due_count = 0

    def take_all(self, logs: Iterable[Log], now_ms: float) -> list[Log]:
        """The changed logs that would be due at some time, to be flushed now."""
        taken = [log for log in logs if self._is_due(log, math.inf)]
        for log in taken:
            self._taken_ms[log] = self._flushed_ms[log] = now_ms
        return taken

    def take_due(self, logs: Iterable[Log], now_ms: float) -> Due[Log]:
        """The logs that are due now; they count as done from now on."""
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
        """The time until the next check of the schedule."""
        intervals = (self._interval_ms(log) for log in logs)
        shortest_ms = min(
            (interval_ms for interval_ms in intervals if interval_ms is not None), default=WAKE_MS_MAX
        )
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
