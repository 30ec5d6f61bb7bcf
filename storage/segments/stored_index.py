"""An index and its file: loaded when it is first asked, written when the log is flushed.

New entries are kept in memory until a flush takes them to the file, in a thread and before the recovery point
moves beyond them; so an append costs no second write. After a crash the entries that are missing belong to
the tail of the log that recovery reads anyway, and are made again. An entry below the recovery point never
leaves the file again: nothing but a flush writes entries, and a flush may find no room for a long time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Generic, TypeVar

from barnabas.storage.filesystem import File, FileSystem

Index = TypeVar("Index")


class StoredIndex(Generic[Index]):
    """One index file of a segment, `size_bytes` of which are entries."""

    __slots__ = ("_filesystem", "_load", "_loaded", "_open", "_pending", "entry_bytes", "path", "size_bytes")

    def __init__(
        self,
        filesystem: FileSystem,
        path: str,
        entry_bytes: int,
        load: Callable[[bytes], Index],
        open_file: Callable[[str], File],
    ) -> None:
        """`open_file` opens the file to read it, where the loop does so and not a thread."""
        self.path = path
        self.entry_bytes = entry_bytes
        """The size of one entry."""
        self.size_bytes = 0
        self._filesystem = filesystem
        self._load = load
        self._open = open_file
        self._loaded: Index | None = None
        self._pending = bytearray()

    @property
    def length_bytes(self) -> int:
        """How large the index is, with what a flush has to write."""
        return self.size_bytes + len(self._pending)

    @property
    def pending_bytes(self) -> int:
        """How much a flush has to write."""
        return len(self._pending)

    @property
    def pending(self) -> bytes:
        """That; of a new index, all of it."""
        return bytes(self._pending)

    def get(self) -> Index:
        """The index, read from the file if it isn't in memory; raises OSError."""
        if self._loaded is None:
            self._loaded = self._load(self._read() + bytes(self._pending))
        return self._loaded

    def peek(self) -> Index:
        """The index for one look: read from the file, and not kept, if it isn't in memory; raises OSError."""
        return self._loaded if self._loaded is not None else self._load(self._read() + bytes(self._pending))

    def release(self) -> None:
        """Lets go of the memory; what waits for the file stays."""
        self._loaded = None

    def add(self, entry: bytes) -> None:
        """Notes an entry's bytes, which the index in memory has taken already, for the file."""
        self._pending += entry

    def write_pending(self, count_bytes: int) -> None:
        """Appends the first so many pending bytes and makes them durable. For a thread; raises OSError.

        Once the cause is gone it can be called again. A part that an error left is cut off, then or now.
        """
        data = bytes(self._pending[:count_bytes])
        with closing(self._filesystem.open(self.path, create=True)) as file:
            if file.size() > self.size_bytes:
                file.truncate(self.size_bytes)
            try:
                file.write([data])
            except OSError:
                with suppress(OSError):
                    file.truncate(self.size_bytes)
                raise
            file.sync()

    def pending_written(self, count_bytes: int) -> None:
        """For the loop's thread, once `write_pending` is through."""
        del self._pending[:count_bytes]
        self.size_bytes += count_bytes

    def adopt(self, index: Index, size_bytes: int) -> None:
        """Takes `index` for what the file's first so many bytes, all it has, hold."""
        self.size_bytes = size_bytes
        self._loaded = index
        self._pending.clear()

    def settle(self, found: bytes) -> None:
        """Brings the file, which holds `found`, in line with what `adopt` and `add` made of the index.

        The entries made again that are in the file stay there; the first other one and what follows it are
        cut off. Those that stay are synced: who wrote them may have been killed before they were durable. For
        recovery.
        """
        found_again = self._same_bytes(found[self.size_bytes :])
        self.pending_written(found_again)
        with closing(self._filesystem.open(self.path, create=True)) as file:
            if file.size() > self.size_bytes:
                file.truncate(self.size_bytes)
            if found_again:
                file.sync()

    def _same_bytes(self, found: bytes) -> int:
        """How long the pending entries and `found` are the same, in bytes of whole entries."""
        pending, entry_bytes = bytes(self._pending), self.entry_bytes
        ends = range(0, min(len(pending), len(found)) + 1, entry_bytes)
        return ends[bisect_left(ends, 1, key=lambda end: pending[:end] != found[:end]) - 1]

    def _read(self) -> bytes:
        if self.size_bytes == 0:
            return b""
        with closing(self._open(self.path)) as file:
            return file.read(0, self.size_bytes)
