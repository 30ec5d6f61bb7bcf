"""The ages of the oldest records that are not final, by share-partition: for metrics and for readers.

An age is the wall-clock time since the timestamp of the batch that holds the start offset. It also counts
while a member holds the record, while the record waits, and while no consumer runs. Nothing is computed when
records are delivered or acknowledged: a look compares the start offsets with those of the last look, and
reads the headers of the few batches that are new. It reads synchronously, as fetches do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import nsmallest
from typing import Final, NamedTuple

from barnabas.protocol.errors import ApiError
from barnabas.runtime.clock import Clock
from barnabas.share.leader.backlog import Backlog
from barnabas.storage.errors import StorageError
from barnabas.storage.log.partition_log import PartitionLog

LOOK_UPS_MAX: Final = 100
"""The most timestamps that one look reads from the logs. The other share-partitions keep the timestamp of
their last look-up, or have no age, until a later look. Those whose last look-up is longest ago are first.
"""
LOOK_UP_AGAIN_MS: Final = 60_000
"""After this time a timestamp that could not be read is looked up again."""


def oldest_record_timestamp_ms(backlog: Backlog) -> int | None:
    """The timestamp of the oldest record, read from the log now. None without a lag, if only markers of
    transactions are left, or if the log cannot be read there or has no timestamps.
    """
    return _timestamp_at(backlog.log, _oldest_offset(backlog)) if backlog.lag else None


class _LookUp(NamedTuple):
    """The oldest record of a share-partition, when it was looked up last."""

    offset: int
    timestamp_ms: int | None
    """None if it could not be read."""
    at_ms: int
    """Monotonic."""


class OldestRecords:
    """The oldest records of all share-partitions. Used on the loop's thread only."""

    def __init__(self, clock: Clock, backlogs: Callable[[], Iterable[Backlog]]) -> None:
        self._clock = clock
        self._backlogs = backlogs
        self._look_ups: dict[tuple[str, PartitionLog], _LookUp] = {}
        """By group and log; a log that is opened again is another one."""

    def ages_ms(self) -> Iterator[tuple[Backlog, int]]:
        """Each share-partition with the age of its oldest record, 0 without a lag. Those whose log is offline
        or cannot be read at the start offset are left out.
        """
        backlogs = list(self._backlogs())
        self._look_up_moved(backlogs)
        now_ms = self._clock.wall_ms()
        for backlog in backlogs:
            found = self._look_ups.get((backlog.group_id, backlog.log))
            if not backlog.lag:
                yield backlog, 0
            elif found is not None and found.timestamp_ms is not None and backlog.log.offline is None:
                yield backlog, max(now_ms - found.timestamp_ms, 0)

    def _look_up_moved(self, backlogs: Iterable[Backlog]) -> None:
        """Looks up new oldest records, and forgets share-partitions without a backlog."""
        before, now_ms = self._look_ups, self._clock.monotonic_ms()
        self._look_ups = {}
        moved: list[tuple[int, Backlog]] = []
        for backlog in backlogs:
            if not backlog.lag or backlog.log.offline is not None:
                continue
            key = backlog.group_id, backlog.log
            last = before.get(key)
            if last is not None:
                self._look_ups[key] = last
            if last is None or _is_outdated(last, _oldest_offset(backlog), now_ms):
                moved.append((-1 if last is None else last.at_ms, backlog))
        for _, backlog in nsmallest(LOOK_UPS_MAX, moved, key=_at_ms):
            offset = _oldest_offset(backlog)
            look_up = _LookUp(offset, _timestamp_at(backlog.log, offset), now_ms)
            self._look_ups[backlog.group_id, backlog.log] = look_up


def _oldest_offset(backlog: Backlog) -> int:
    """Records may be deleted from the start offset on, before the group has noticed it."""
    return max(backlog.start_offset, backlog.log.log_start_offset)


def _is_outdated(last: _LookUp, offset: int, now_ms: int) -> bool:
    if last.offset != offset:
        return True
    return last.timestamp_ms is None and now_ms - last.at_ms >= LOOK_UP_AGAIN_MS


def _at_ms(moved: tuple[int, Backlog]) -> int:
    return moved[0]


def _timestamp_at(log: PartitionLog, offset: int) -> int | None:
    """None if the log cannot be read there, has no record there, or if the records have no timestamps."""
    try:
        return log.timestamp_at(offset)
    except (StorageError, ApiError):
        return None
