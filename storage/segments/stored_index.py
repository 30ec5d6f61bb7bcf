"""An index and its file: loaded at the first use, written when the log is flushed.

New entries stay in memory until a flush writes them, in a thread and before the recovery point moves beyond
them. So an append needs no second write. Entries that a crash loses belong to the tail of the log, which
recovery reads in any case, and are rebuilt. An entry below the recovery point is never removed from the file:
only a flush writes entries, and on a full disk no flush may succeed for a long time.

The formats of the indexes have no checksums. A log keeps those of its index files in a file of its own
(`format.index_checksums`), and an index is compared with its checksum whenever it is loaded. An index of
another origin is trusted until it contradicts the log.
"""

from __future__ import annotations

import errno
from bisect import bisect_left
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Generic, TypeVar

from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.errors import IndexDamaged
from barnabas.storage.filesystem import File, FileSystem
from barnabas.storage.format.index_checksums import NO_BYTES, IndexChecksum

Index = TypeVar("Index")


class StoredIndex(Generic[Index]):
    """One index file of a segment; its first `size_bytes` are entries."""

    __slots__ = (
        "_checksum",
        "_damaged",
        "_filesystem",
        "_load",
        "_loaded",
        "_open",
        "_pending",
        "entry_bytes",
        "expected",
        "length_bytes",
        "path",
        "size_bytes",
    )

    def __init__(
        self,
        filesystem: FileSystem,
        path: str,
        entry_bytes: int,
        load: Callable[[bytes], Index],
        open_file: Callable[[str], File],
        damaged: set[str],
    ) -> None:
        """`open_file` opens the file for reading with `OpenFiles`, which makes room for a descriptor.

        `damaged` gets the path if the file turns out to be damaged.
        """
        self.path = path
        self.entry_bytes = entry_bytes
        """The size of one entry."""
        self.size_bytes = 0
        self.length_bytes = 0
        """The size of the index, pending entries included."""
        self.expected: IndexChecksum | None = None
        """For an existing file, its checksum when the log was flushed last, if that is known."""
        self._checksum: IndexChecksum | None = NO_BYTES
        """Of all entries in the file; None if they are of unknown origin."""
        self._filesystem = filesystem
        self._load = load
        self._open = open_file
        self._damaged = damaged
        self._loaded: Index | None = None
        self._pending = bytearray()

    @property
    def pending_bytes(self) -> int:
        """The size of the entries that the next flush writes."""
        return len(self._pending)

    @property
    def pending(self) -> bytes:
        """The entries that the next flush writes; all entries of a new index."""
        return bytes(self._pending)

    @property
    def checksum(self) -> IndexChecksum | None:
        """That of the entries in the file; None if their origin is unknown, so that they may be wrong."""
        return self._checksum

    @property
    def is_damaged(self) -> bool:
        """Whether the file was found to be damaged since it was last rebuilt."""
        return self.path in self._damaged

    def damage(self, reason: str) -> IndexDamaged:
        """The error for a damaged file, which the next opening of the log rebuilds."""
        self._damaged.add(self.path)
        return IndexDamaged(errno.EIO, reason, self.path)

    def trust(self, size_bytes: int) -> bool:
        """Takes over the entries of a file of this size without reading it; False if it must be rebuilt."""
        expected = self.expected
        self.size_bytes = self.length_bytes = size_bytes
        self._checksum = expected if expected is not None and expected.size_bytes == size_bytes else None
        is_another = expected is not None and expected.size_bytes != size_bytes
        return not (self.is_damaged or is_another or size_bytes % self.entry_bytes)

    def is_intact(self, found: bytes) -> bool:
        """Whether the content of the file is the one that was written, as far as that is known."""
        return not self.is_damaged and (self.expected is None or self.expected.matches(found))

    def known(self, found: bytes) -> bytes:
        """The part of an intact file's content that the checksum covers; all of it without a checksum."""
        return found if self.expected is None else found[: self.expected.size_bytes]

    def get(self) -> Index:
        """The index, loaded from the file if necessary; raises OSError, IndexDamaged."""
        if self._loaded is None:
            self._loaded = self.peek()
        return self._loaded

    def peek(self) -> Index:
        """The index for one use: if it is not in memory, it is read and not kept. Raises as `get` does."""
        if self._loaded is not None:
            return self._loaded
        try:
            return self._load(self._read() + bytes(self._pending))
        except RecordFormatError as error:
            raise self.damage(str(error)) from error

    def release(self) -> None:
        """Releases the loaded index; pending entries stay."""
        self._loaded = None

    def add(self, entry: bytes) -> None:
        """Adds an entry's bytes for the next flush; the index in memory has the entry already."""
        self._pending += entry
        self.length_bytes += len(entry)

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
        if self._checksum is not None:
            self._checksum = self._checksum.extended(bytes(self._pending[:count_bytes]))
        del self._pending[:count_bytes]
        self.size_bytes += count_bytes

    def adopt(self, index: Index, kept: bytes) -> None:
        """Sets the loaded index; the file begins with `kept`, which contain all its entries.

        The caller has compared the file with `expected`, and adds the entries of all later batches.
        """
        is_known = self.expected is not None and len(kept) <= self.expected.size_bytes
        self.size_bytes = self.length_bytes = len(kept)
        self._checksum = NO_BYTES.extended(kept) if is_known else None
        self._loaded = index
        self._pending.clear()

    def begin(self, index: Index) -> None:
        """Sets the loaded index, which is empty: the caller adds the entries of all batches."""
        self.size_bytes = self.length_bytes = 0
        self._checksum = NO_BYTES
        self._loaded = index
        self._pending.clear()

    def rebuilt(self) -> None:
        """To be called when the file was written anew from the log."""
        self._damaged.discard(self.path)

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

    def checked(self, data: bytes) -> bytes:
        """The content of the file; raises IndexDamaged if it does not match its checksum."""
        if self._checksum is not None and not self._checksum.matches(data):
            raise self.damage("the index does not match its checksum")
        return data

    def _read(self) -> bytes:
        if self.size_bytes == 0:
            return b""
        try:
            with closing(self._open(self.path)) as file:
                data = file.read(0, self.size_bytes)
        except FileNotFoundError as error:
            raise self.damage("the index is missing") from error
        except OSError as error:
            error.filename = error.filename or self.path
            raise
        return self.checked(data)
