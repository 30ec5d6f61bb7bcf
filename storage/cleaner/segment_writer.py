"""Writes a cleaned segment beside its sources, before it is swapped in.

The segment's indexes grow in memory like those of any segment, and are written when it is finished. Then all
files are durable, under names that are not part of the log yet.
"""

from __future__ import annotations

from contextlib import closing

from barnabas.protocol.record_batch import read_header
from barnabas.protocol.varint import Buffer
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.segments.control_batch import ControlBatch
from barnabas.storage.segments.segment import Segment
from barnabas.storage.segments.swap import CLEANED_SUFFIX

_SYNC_BYTES = 16 * 1024 * 1024
"""Bytes between two syncs: without them the kernel could delay other writes for the accumulated pages."""


class SegmentWriter:
    """Writes one cleaned segment. For a thread; methods raise OSError."""

    def __init__(self, filesystem: FileSystem, segment: Segment) -> None:
        """`segment` is a new object with the right base offset, which no other code uses."""
        self.segment = segment
        self._filesystem = filesystem
        self._file = filesystem.open(segment.log_path + CLEANED_SUFFIX, create=True)
        self._buffers: list[Buffer] = []
        self._unsynced_bytes = 0

    def add_data(self, batch: Buffer) -> None:
        header = read_header(batch)
        self.segment.note_data(header.last_offset, len(batch), header.max_timestamp_ms)
        self._add(batch)

    def add_control(self, base_offset: int, control: ControlBatch) -> None:
        self.segment.note_control(base_offset, len(control.data), control)
        self._add(control.data)

    def write(self) -> int:
        """Writes the added batches; returns their size in bytes."""
        size_bytes = sum(map(len, self._buffers))
        if self._buffers:
            self._file.write(self._buffers)
            self._buffers.clear()
        self._unsynced_bytes += size_bytes
        if self._unsynced_bytes >= _SYNC_BYTES:
            self._file.sync()
            self._unsynced_bytes = 0
        return size_bytes

    def finish(self, *, had_aborted: bool) -> None:
        """Makes the records and the indexes durable.

        With `had_aborted` an empty transaction index is written too, because it replaces one with entries.
        """
        self.write()
        self._file.sync()
        segment = self.segment
        segment.note_max_timestamp()
        for index in segment.indexes if had_aborted else segment.batch_indexes:
            data = index.pending
            with closing(self._filesystem.open(index.path + CLEANED_SUFFIX, create=True)) as file:
                file.write([data])
                file.sync()
            index.pending_written(len(data))

    def close(self) -> None:
        self._file.close()

    def _add(self, batch: Buffer) -> None:
        self._buffers.append(batch)
