"""When each log is to be flushed: `log.flush`, `log.flush.interval.ms` and `.bytes`, a topic's `flush.ms`.

A log that changed is due when its interval is over since the flush before, when `flush_bytes` of it are not
safe, and when it has rolled. With log.flush=never the latter alone counts, unless the topic has a `flush.ms`.
Pure: times are the caller's, in ms, of one clock. What happens before a reply (log.flush=always,
`flush.messages`) is the appender's subject.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from barnabas.storage.log_config import FlushPolicy, LogConfig, StorageConfig

WAKE_MS_MIN = 10
"""A topic with a shorter `flush.ms` is flushed this often."""
WAKE_MS_MAX = 1000
"""The schedule is looked at this often at least."""
_EARLY_MS = 5
"""Timers may end a little early; waiting another round for that would double the interval."""


class FlushedLog(Protocol):
    """What is asked of a log."""

    @property
    def config(self) -> LogConfig: ...

    @property
    def needs_flush(self) -> bool: ...

    @property
    def has_rolled(self) -> bool: ...

    @property
    def unflushed_bytes(self) -> int: ...


Log = TypeVar("Log", bound=FlushedLog)


class FlushSchedule(Generic[Log]):
    """Remembers when each log was flushed, as long as the log is open."""

    def __init__(self, storage: StorageConfig) -> None:
        self._storage = storage
        self._flushed_ms: WeakKeyDictionary[Log, float] = WeakKeyDictionary()

    def take_all(self, logs: Iterable[Log], now_ms: float) -> list[Log]:
        """Those that changed and will be due at some time."""
        return self._taken([log for log in logs if self._is_due(log, math.inf)], now_ms)

    def take_due(self, logs: Iterable[Log], now_ms: float) -> list[Log]:
        """Those to flush now, which count as flushed from here on."""
        return self._taken([log for log in logs if self._is_due(log, now_ms)], now_ms)

    def wake_ms(self, logs: Iterable[Log]) -> float:
        """How long to wait before looking again."""
        intervals = (self._interval_ms(log) for log in logs)
        shortest_ms = min((one for one in intervals if one is not None), default=WAKE_MS_MAX)
        return max(WAKE_MS_MIN, min(shortest_ms, self._storage.flush_interval_ms, WAKE_MS_MAX))

    def _taken(self, due: list[Log], now_ms: float) -> list[Log]:
        for log in due:
            self._flushed_ms[log] = now_ms
        return due

    def _is_due(self, log: Log, now_ms: float) -> bool:
        if not log.needs_flush:
            return False
        if log.has_rolled or self._has_many_bytes(log):
            return True
        interval_ms = self._interval_ms(log)
        flushed_ms = self._flushed_ms.get(log)
        return interval_ms is not None and (
            flushed_ms is None or now_ms + _EARLY_MS >= flushed_ms + interval_ms
        )

    def _has_many_bytes(self, log: Log) -> bool:
        storage = self._storage
        return storage.flush is not FlushPolicy.NEVER and log.unflushed_bytes >= storage.flush_bytes

    def _interval_ms(self, log: Log) -> int | None:
        if log.config.flush_ms is not None:
            return log.config.flush_ms
        return None if self._storage.flush is FlushPolicy.NEVER else self._storage.flush_interval_ms
