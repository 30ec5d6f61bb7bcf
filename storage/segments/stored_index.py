"""An index and its file: loaded at the first use, written when the log is flushed.

New entries stay in memory until a flush writes them, in a thread and before the recovery point moves beyond
them. So an append needs no second write. Entries that a crash loses belong to the tail of the log, which
recovery reads in any case, and are rebuilt. An entry below the recovery point is never removed from the file:
only a flush writes entries, and on a full disk no flush may succeed for a long time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Generic, TypeVar

from barnabas.storage.filesystem import File, FileSystem

Index = TypeVar("Index")


class StoredIndex(Generic[Index]):
    """One index file of a segment; its first `size_bytes` are entries."""

    __slots__ = ("_filesystem", "_load", "_loaded", "_open", "_pending", "entry_bytes", "path", "size_bytes")

    def __init__(
        self,
        filesystem: FileSystem,
        path: str,
        entry_bytes: int,
        load: Callable[[bytes], Index],
        open_file: Callable[[str], File],
    ) -> None:
        """`open_file` opens the file for reading with `OpenFiles`, which makes room for a descriptor."""
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
        """The size of the index, pending entries included."""
        return self.size_bytes + len(self._pending)

    @property
    def pending_bytes(self) -> int:
        """The size of the entries that the next flush writes."""
        return len(self._pending)

    @property
    def pending(self) -> bytes:
        """The entries that the next flush writes; all entries of a new index."""
        return bytes(self._pending)

    def get(self) -> Index:
        """The index, loaded from the file if necessary; raises OSError."""
        if self._loaded is None:
            self._loaded = self._load(self._read() + bytes(self._pending))
        return self._loaded

    def peek(self) -> Index:
        """The index for one use: if it is not in memory, it is read and not kept. Raises OSError."""
        return self._loaded if self._loaded is not None else self._load(self._read() + bytes(self._pending))

    def release(self) -> None:
        """Releases the loaded index; pending entries stay."""
        self._loaded = None

    def add(self, entry: bytes) -> None:
        """Adds an entry's bytes for the next flush; the index in memory has the entry already."""
        self._pending += entry

    def write_pending(self, count_bytes: int) -> None:
        """Appends the first `count_bytes` pending bytes and syncs the file. For a thread; raises OSError.

        It can be called again after an error. The partial write of an error is cut off at once, or by the
        next call.
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
        """Counts the bytes as written; for the loop's thread, after `write_pending`."""
        del self._pending[:count_bytes]
        self.size_bytes += count_bytes

    def adopt(self, index: Index, size_bytes: int) -> None:
        """Sets the loaded index; the file's first `size_bytes` contain all its entries."""
        self.size_bytes = size_bytes
        self._loaded = index
        self._pending.clear()

    def settle(self, found: bytes) -> None:
        """Brings the file, whose content is `found`, in line with the index after `adopt` and `add`.

        Rebuilt entries that are equal in the file stay there; the file is cut at the first difference.
        Entries that stay are synced, because their writer may have been killed before they were durable. For
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
        """The length of the common prefix of the pending entries and `found`, in bytes of whole entries."""
        pending, entry_bytes = bytes(self._pending), self.entry_bytes
        ends = range(0, min(len(pending), len(found)) + 1, entry_bytes)
        return ends[bisect_left(ends, 1, key=lambda end: pending[:end] != found[:end]) - 1]

    def _read(self) -> bytes:
        if self.size_bytes == 0:
            return b""
        with closing(self._open(self.path)) as file:
            return file.read(0, self.size_bytes)
