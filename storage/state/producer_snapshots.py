"""The producer snapshots of one log: files with the producers of all records below an offset.

The newest snapshot and the batches behind it give the whole state. Once the log had a producer, each flush
needs a snapshot: otherwise the newest one and the records behind the recovery point would not contain it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.storage.filesystem import FileSystem, read_whole, replace_whole
from barnabas.storage.format.producer_snapshot import (
    SNAPSHOT_SUFFIX,
    ProducerSnapshotEntry,
    SnapshotCorrupt,
    decode_snapshot,
    encode_snapshot,
)
from barnabas.storage.producers.producer_state import ProducerState
from barnabas.storage.segments.segment import OFFSET_DIGITS

_KEPT_COUNT: Final = 2


class ProducerSnapshots:
    """The snapshots on the disk, and the producers that the next flush writes."""

    __slots__ = ("_directory", "_filesystem", "_offsets", "rolled", "useless")

    def __init__(self, filesystem: FileSystem, directory: str, offsets: Sequence[int]) -> None:
        """`offsets` are those in the names of the files, ascending."""
        self._filesystem = filesystem
        self._directory = directory
        self._offsets = list(offsets)
        self.useless: list[int] = []
        """The offsets of those that are damaged or beyond the log's end."""
        self.rolled: tuple[int, ProducerState] | None = None
        """(offset, producers) of the last roll; the next flush writes a snapshot of them."""

    def find_newest(self, log_end_offset: int) -> tuple[int, list[ProducerSnapshotEntry]] | None:
        """(offset, entries) of the newest good one not beyond the log's end. For a thread; raises OSError."""
        while self._offsets:
            offset = self._offsets[-1]
            if offset <= log_end_offset:
                try:
                    return offset, decode_snapshot(read_whole(self._filesystem, self._path(offset)))
                except SnapshotCorrupt:
                    pass  # an older one serves as well; more of the log is replayed then
            self.useless.append(self._offsets.pop())
        return None

    def add(self, end_offset: int, producers: ProducerState) -> None:
        """Writes the snapshot of a replay of the whole log. For a thread; raises OSError."""
        self._write_snapshot(end_offset, producers)
        self._offsets.append(end_offset)

    def remove_useless(self) -> None:
        """Removes them durably: one that came back could count for later records. For a thread; OSError."""
        removed = [offset for offset in self.useless if offset not in self._offsets]
        for offset in removed:
            self._filesystem.remove(self._path(offset))
        if removed:
            self._filesystem.sync_directory(self._directory)
        self.useless.clear()

    def note_roll(self, end_offset: int, producers: ProducerState) -> None:
        """A segment ends here: the next flush writes a snapshot of these producers, if there are any."""
        if len(producers):
            self.rolled = end_offset, producers.copy()

    def take(self, end_offset: int, producers: ProducerState) -> Sequence[tuple[int, ProducerState]]:
        """(offset, producers) of the snapshots to write in a flush; they count as written from now on."""
        rolled, self.rolled = self.rolled, None
        taken = [rolled] if rolled is not None and rolled[0] < end_offset else []
        if producers.changed:
            taken.append((end_offset, producers.copy()))
        elif taken:
            taken.append((end_offset, taken[0][1]))
        producers.changed = False
        return taken

    async def write(self, taken: Sequence[tuple[int, ProducerState]], end_offset: int) -> None:
        """Writes what a flush has taken, or renames the newest snapshot, which is still valid at the new end.
        Then removes all but the last two; raises OSError.
        """
        filesystem, offsets = self._filesystem, self._offsets
        for offset, producers in taken:
            await filesystem.run(self._write_snapshot, offset, producers)
            offsets[:] = sorted({*offsets, offset})
        if offsets and offsets[-1] < end_offset:
            await filesystem.run(filesystem.rename, self._path(offsets[-1]), self._path(end_offset))
            offsets[-1] = end_offset
        for offset in offsets[:-_KEPT_COUNT]:
            offsets.remove(offset)
            await filesystem.run(filesystem.remove, self._path(offset))

    def _path(self, offset: int) -> str:
        return f"{self._directory}/{offset:0{OFFSET_DIGITS}d}{SNAPSHOT_SUFFIX}"

    def _write_snapshot(self, offset: int, producers: ProducerState) -> None:
        replace_whole(self._filesystem, self._path(offset), encode_snapshot(producers.to_snapshot()))
