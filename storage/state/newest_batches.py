"""The newest batches of a log, kept in memory: most readers follow the end of a log, and need no file then.

Small batches are kept as they are appended, up to `LOG_BYTES_MAX` for each log and `ALL_BYTES_MAX` for all
logs together; then the oldest batches go, and all those of the log that was appended to least recently. A
larger batch is only in the file, and so are those before it. Share state is not kept. Pure.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

BATCH_BYTES_MAX: Final = 16 * 1024
"""A larger batch is not kept: reading it costs little beside its size."""
LOG_BYTES_MAX: Final = 64 * 1024
ALL_BYTES_MAX: Final = 16 * 1024 * 1024
OBJECT_BYTES: Final = 112
"""The memory that a kept batch takes beside its content; it counts towards both bounds."""

_NOWHERE: Final = 1 << 63
"""An offset above all others."""


class KeptBatches:
    """The memory for the newest batches of all logs."""

    __slots__ = ("_logs", "bytes_left")

    def __init__(self, bytes_max: int = ALL_BYTES_MAX) -> None:
        self.bytes_left = bytes_max
        self._logs: dict[NewestBatches, None] = {}
        """The logs with kept batches; the one that was appended to least recently is the first."""

    def appended_to(self, log: NewestBatches) -> None:
        """The log has kept a batch. Makes room if there is too little."""
        self._logs.pop(log, None)
        self._logs[log] = None
        while self.bytes_left < 0:
            next(iter(self._logs)).forget()

    def forgot(self, log: NewestBatches) -> None:
        self._logs.pop(log, None)


class NewestBatches:
    """The newest batches of one log, without gaps: all data from `start_offset` on. Used on the loop's thread
    only.
    """

    __slots__ = ("_base_offsets", "_batches", "_kept", "_last_offsets", "size_bytes", "start_offset")

    def __init__(self, kept: KeptBatches) -> None:
        self._kept = kept
        self._batches: list[bytes] = []
        self._base_offsets: list[int] = []
        self._last_offsets: list[int] = []
        self.size_bytes = 0
        self.start_offset = _NOWHERE
        """All data at or above this offset is here. Above all offsets if nothing is kept."""

    def add(self, data_end_offset: int, base_offset: int, last_offset: int, data: bytes) -> None:
        """Keeps a batch that was appended behind all others; the data before it ends at `data_end_offset`
        (exclusive).
        """
        if not self._batches:
            self.start_offset = data_end_offset
        self._batches.append(data)
        self._base_offsets.append(base_offset)
        self._last_offsets.append(last_offset)
        size_bytes = len(data) + OBJECT_BYTES
        self.size_bytes += size_bytes
        self._kept.bytes_left -= size_bytes
        if self.size_bytes > LOG_BYTES_MAX:
            self._forget_oldest()
        self._kept.appended_to(self)

    def read(self, offset: int, upper_offset: int, records_max: int) -> bytes:
        """The batches that end at or above `offset`, from `start_offset` on, and begin below `upper_offset`
        (exclusive): one at least if there is one, and no more than have `records_max` offsets from `offset`
        on.
        """
        first = end = bisect_left(self._last_offsets, offset)
        count = 0
        while end < len(self._batches) and count < records_max and self._base_offsets[end] < upper_offset:
            count += self._last_offsets[end] - max(self._base_offsets[end], offset) + 1
            end += 1
        return self._batches[first] if end - first == 1 else b"".join(self._batches[first:end])

    def forget(self) -> None:
        """Keeps nothing of what was appended: it is not in the log any more, or others need the memory."""
        self._kept.bytes_left += self.size_bytes
        self._kept.forgot(self)
        self._batches, self._base_offsets, self._last_offsets = [], [], []
        self.size_bytes = 0
        self.start_offset = _NOWHERE

    def _forget_oldest(self) -> None:
        """Keeps the newer half."""
        count, size_bytes = 0, 0
        while self.size_bytes - size_bytes > LOG_BYTES_MAX // 2:
            size_bytes += len(self._batches[count]) + OBJECT_BYTES
            count += 1
        self.start_offset = self._last_offsets[count - 1] + 1
        self.size_bytes -= size_bytes
        self._kept.bytes_left += size_bytes
        del self._batches[:count], self._base_offsets[:count], self._last_offsets[:count]
