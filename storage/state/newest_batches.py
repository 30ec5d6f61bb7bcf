"""The newest batches of a log, kept in memory: most readers follow the end of a log, and need no file then.

Small batches are kept as they are appended, up to `LOG_BYTES_MAX` for each log and `ALL_BYTES_MAX` for all
logs together; then the oldest batches go, and all those of the log that was appended to least recently. A
larger batch is only in the file, and so are those before it. Share state is not kept. Pure.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.protocol.record_batch import CONTROL_FLAG
from barnabas.protocol.tuples import maker

BATCH_BYTES_MAX: Final = 16 * 1024
"""A larger batch is not kept: reading it costs little beside its size."""
LOG_BYTES_MAX: Final = 64 * 1024
ALL_BYTES_MAX: Final = 16 * 1024 * 1024
OBJECT_BYTES: Final = 200
"""The memory that a kept batch takes beside its content; it counts towards both bounds."""

_NOWHERE: Final = 1 << 63
"""An offset above all others."""


_ATTRIBUTES_AND_COUNT: Final = struct.Struct(">21xh34xi")
"""Of the header of a batch."""


class NewestBatch(NamedTuple):
    """A kept batch; both offsets are inclusive."""

    base_offset: int
    last_offset: int
    data: bytes
    has_data: bool
    """Whether it has records of data: it is neither a control batch nor empty."""


_new_batch = maker(NewestBatch)


class KeptBatches:
    """The memory for the newest batches of all logs."""

    __slots__ = ("_logs", "bytes_left", "latest")

    def __init__(self, bytes_max: int = ALL_BYTES_MAX) -> None:
        self.bytes_left = bytes_max
        self._logs: dict[NewestBatches, None] = {}
        """The logs with kept batches; the one that was appended to least recently is the first."""
        self.latest: NewestBatches | None = None
        """The last one."""

    def appended_to(self, log: NewestBatches) -> None:
        """The log has kept a batch. Makes room if there is too little."""
        self._logs.pop(log, None)
        self._logs[log] = None
        self.latest = log
        while self.bytes_left < 0:
            next(iter(self._logs)).forget()

    def forgot(self, log: NewestBatches) -> None:
        self._logs.pop(log, None)
        if self.latest is log:
            self.latest = None


class NewestBatches:
    """The newest batches of one log, without gaps: all data from `start_offset` on. Used on the loop's thread
    only.
    """

    __slots__ = ("_batches", "_kept", "_last_offsets", "size_bytes", "start_offset")

    def __init__(self, kept: KeptBatches) -> None:
        self._kept = kept
        self._batches: list[NewestBatch] = []
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
        attributes, record_count = _ATTRIBUTES_AND_COUNT.unpack_from(data)
        has_data = record_count > 0 and not attributes & CONTROL_FLAG
        self._batches.append(_new_batch((base_offset, last_offset, data, has_data)))
        self._last_offsets.append(last_offset)
        size_bytes = len(data) + OBJECT_BYTES
        self.size_bytes += size_bytes
        self._kept.bytes_left -= size_bytes
        if self.size_bytes > LOG_BYTES_MAX:
            self._forget_oldest()
        if self._kept.latest is not self or self._kept.bytes_left < 0:
            self._kept.appended_to(self)

    def read(self, offset: int, upper_offset: int, records_max: int) -> Sequence[NewestBatch]:
        """The batches that end at or above `offset`, from `start_offset` on, and begin below `upper_offset`
        (exclusive): one at least if there is one, and no more than have `records_max` offsets from `offset`
        on.
        """
        batches = self._batches
        first = end = bisect_left(self._last_offsets, offset)
        until = offset + records_max
        while end < len(batches) and offset < until and batches[end].base_offset < upper_offset:
            base_offset, last_offset, _, _ = batches[end]
            if base_offset > offset:  # share state lies before it
                until += base_offset - offset
            offset = last_offset + 1
            end += 1
        return batches[first:end]

    def forget(self) -> None:
        """Keeps nothing of what was appended: it is not in the log any more, or others need the memory."""
        self._kept.bytes_left += self.size_bytes
        self._kept.forgot(self)
        self._batches, self._last_offsets = [], []
        self.size_bytes = 0
        self.start_offset = _NOWHERE

    def _forget_oldest(self) -> None:
        """Keeps the newer half."""
        count, size_bytes = 0, 0
        while self.size_bytes - size_bytes > LOG_BYTES_MAX // 2:
            size_bytes += len(self._batches[count].data) + OBJECT_BYTES
            count += 1
        self.start_offset = self._last_offsets[count - 1] + 1
        self.size_bytes -= size_bytes
        self._kept.bytes_left += size_bytes
        del self._batches[:count], self._last_offsets[:count]
