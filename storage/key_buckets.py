"""The buckets of keys' hashes in the batches of all logs, so that the keys of a batch are hashed once. Pure.

See `protocol.record_keys.buckets`. Members of a consumer group that share a partition read the same batches
at about the same time, so the newest entries are the useful ones. They can be computed again at any time.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

BATCHES_MAX: Final = 100_000
"""The most batches of all logs of a broker: about 20 MB. Beyond it the oldest entries are dropped."""


class KeyBuckets:
    """The entries of all logs of one broker."""

    __slots__ = ("_batches_max", "_count", "_logs")

    def __init__(self, batches_max: int = BATCHES_MAX) -> None:
        self._batches_max = batches_max
        self._count = 0
        self._logs: OrderedDict[LogKeyBuckets, None] = OrderedDict()
        """The logs with entries; the one that has got none for the longest time comes first."""

    def __len__(self) -> int:
        return self._count

    def added(self, log: LogKeyBuckets) -> None:
        """To be called by a log that has one entry more: makes room if necessary."""
        self._logs[log] = None
        self._logs.move_to_end(log)
        self._count += 1
        if self._count > self._batches_max:
            self._drop_oldest()

    def dropped(self, log: LogKeyBuckets, entry_count: int) -> None:
        """To be called by a log that has dropped all of its entries."""
        self._logs.pop(log, None)
        self._count -= entry_count

    def _drop_oldest(self) -> None:
        log = next(iter(self._logs))
        if not log.drop_oldest():
            del self._logs[log]
        self._count -= 1


class LogKeyBuckets:
    """The entries of one log, by the base offsets of its batches."""

    __slots__ = ("_all_logs", "_by_offset")

    def __init__(self, all_logs: KeyBuckets) -> None:
        self._all_logs = all_logs
        self._by_offset: OrderedDict[int, int] = OrderedDict()
        """An ordered one, because finding the first entry of a dict passes over all that were deleted."""

    def __len__(self) -> int:
        return len(self._by_offset)

    def find(self, base_offset: int) -> int | None:
        """The buckets of the batch that begins at this offset; None if they are not known."""
        return self._by_offset.get(base_offset)

    def add(self, base_offset: int, buckets: int) -> None:
        """Add a batch that is not known."""
        self._by_offset[base_offset] = buckets
        self._all_logs.added(self)

    def drop_oldest(self) -> bool:
        """Drop the entry that was added first; returns whether others are left."""
        self._by_offset.popitem(last=False)
        return bool(self._by_offset)

    def forget(self) -> None:
        """Drop all entries: the log is closed, or its batches were written anew."""
        self._all_logs.dropped(self, len(self._by_offset))
        self._by_offset.clear()
