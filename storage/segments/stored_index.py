"""An index and its file: loaded when it is first asked, written when the log is flushed.

New entries are kept in memory until a flush takes them to the file, in a thread and before the recovery point
moves beyond them; so an append costs no second write. After a crash the entries that are missing belong to
the tail of the log that recovery reads anyway, and are made again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Generic, TypeVar

from barnabas.storage.filesystem import FileSystem

Index = TypeVar("Index")


class StoredIndex(Generic[Index]):
    """One index file of a segment, `size_bytes` of which are entries."""

    __slots__ = ("_filesystem", "_load", "_loaded", "_pending", "path", "size_bytes")

    def __init__(self, filesystem: FileSystem, path: str, load: Callable[[bytes], Index]) -> None:
        self.path = path
        self.size_bytes = 0
        self._filesystem = filesystem
        self._load = load
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

        Once the cause is gone it can be called again: what an error left of them doesn't stay.
        """
        data = bytes(self._pending[:count_bytes])
        with closing(self._filesystem.open(self.path, create=True)) as file:
            if file.size() > self.size_bytes:
                file.truncate(self.size_bytes)
            file.write([data])
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

        Nothing is written if the entries made again are the ones found, as after a clean shutdown; but who
        wrote them may have been killed before they were durable. For recovery.
        """
        found_again = len(self._pending) if found[self.size_bytes :].startswith(self._pending) else 0
        self.pending_written(found_again)
        with closing(self._filesystem.open(self.path, create=True)) as file:
            if file.size() > self.size_bytes:
                file.truncate(self.size_bytes)
            if found_again:
                file.sync()

    def _read(self) -> bytes:
        if self.size_bytes == 0:
            return b""
        with closing(self._filesystem.open(self.path, create=False)) as file:
            return file.read(0, self.size_bytes)
