"""A filesystem that remembers the results of a crash before each of its operations.

Two kinds of crash: the process ends, and all writes stay; or the power fails, and each file keeps its synced
content, while a directory keeps its creations, removals and renamings up to the last `sync_directory` and any
number of the later ones, in their order.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence

from barnabas.protocol.varint import Buffer
from tests.storage.memory_filesystem import MemoryFile, MemoryFileSystem


class _Content:
    """A file apart from its name."""

    __slots__ = ("durable", "written")

    def __init__(self) -> None:
        self.written = b""
        self.durable = b""


_Names = dict[str, _Content]
_Image = dict[str, bytes]


class CrashingFileSystem(MemoryFileSystem):
    """Remembers from `watch` on; `images` are the files after each crash."""

    def __init__(self) -> None:
        super().__init__()
        self.images: list[_Image] = []
        self._watching = False
        self._contents: _Names = {}
        self._durable_names: _Names = {}
        self._since_sync: list[_Names] = []

    def watch(self) -> None:
        """Counts everything as durable, and begins to remember."""
        for path, content in self.files.items():
            one = self._contents[path] = _Content()
            one.written = one.durable = bytes(content)
        self._durable_names = dict(self._contents)
        self._watching = True

    def left_by_crashes(self) -> Iterator[MemoryFileSystem]:
        """A filesystem for each different outcome."""
        seen: set[frozenset[tuple[str, bytes]]] = set()
        for image in self.images:
            key = frozenset(image.items())
            if key not in seen:
                seen.add(key)
                left = MemoryFileSystem()
                left.directories = set(self.directories)
                left.files = {path: bytearray(content) for path, content in image.items()}
                yield left

    def open(self, path: str, *, create: bool) -> MemoryFile:
        if create and path not in self.files:
            self._crash_here()
            self.files[path] = bytearray()
            self._contents[path] = _Content()
            self._names_changed()
        if path not in self.files:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return _WatchedFile(self, path)

    def remove(self, path: str) -> None:
        self._crash_here()
        super().remove(path)
        self._contents.pop(path, None)
        self._names_changed()

    def rename(self, source: str, target: str) -> None:
        self._crash_here()
        super().rename(source, target)
        if source in self._contents:
            self._contents[target] = self._contents.pop(source)
        self._names_changed()

    def sync_directory(self, path: str) -> None:
        self._crash_here()
        super().sync_directory(path)
        self._durable_names = dict(self._contents)
        self._since_sync.clear()

    def content(self, path: str) -> _Content:
        return self._contents.setdefault(path, _Content())

    def crash_here(self) -> None:
        self._crash_here()

    def _names_changed(self) -> None:
        self._since_sync.append(dict(self._contents))

    def _crash_here(self) -> None:
        if not self._watching:
            return
        self.images.append({path: bytes(content) for path, content in self.files.items()})
        for names in (self._durable_names, *self._since_sync):
            self.images.append({path: content.durable for path, content in names.items()})


class _WatchedFile(MemoryFile):
    def __init__(self, filesystem: CrashingFileSystem, path: str) -> None:
        super().__init__(filesystem, path)
        self._watched = filesystem
        self._state = filesystem.content(path)

    def write(self, buffers: Sequence[Buffer]) -> None:
        self._watched.crash_here()
        super().write(buffers)
        self._state.written += b"".join(buffers)

    def sync(self) -> None:
        self._watched.crash_here()
        super().sync()
        self._state.durable = self._state.written
