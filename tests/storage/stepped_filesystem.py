"""A filesystem in memory that keeps the result of a crash after each single step on the disk.

A step is a write, a truncation, an fsync, a creation, a removal, a renaming, an fsync of a directory;
replacing a whole file is five steps. A crash has one of three results: all steps are done (the process is
killed); the synced contents under the synced names (the power fails); or the synced contents under the
present names (the power fails later, when the names have reached the disk by themselves).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from barnabas.protocol.varint import Buffer
from tests.storage.memory_filesystem import MemoryFile, MemoryFileSystem


class Crash(NamedTuple):
    """The result of a crash after a step; `note` is the test's note at that time."""

    step: str
    note: object
    files: dict[str, bytes]
    directories: set[str]

    def filesystem(self) -> SteppedFileSystem:
        """The filesystem of the next start."""
        left = SteppedFileSystem()
        left.directories = set(self.directories)
        left.files = {path: bytearray(content) for path, content in self.files.items()}
        left.synced = {path: bytes(content) for path, content in self.files.items()}
        left.on_disk = dict(left.synced)
        return left


class SteppedFile(MemoryFile):
    """A file whose steps are recorded."""

    def __init__(self, filesystem: SteppedFileSystem, path: str) -> None:
        super().__init__(filesystem, path)
        self._stepped = filesystem
        self._name = path

    def write(self, buffers: Sequence[Buffer]) -> None:
        super().write(buffers)
        self._stepped.step(f"write {self._name}")

    def truncate(self, size: int) -> None:
        super().truncate(size)
        self._stepped.step(f"truncate {self._name}")

    def sync(self) -> None:
        super().sync()
        self._stepped.content_synced(self._name)
        self._stepped.step(f"sync {self._name}")


class SteppedFileSystem(MemoryFileSystem):
    """`crashes` grows with each step; `note` describes the state at that time."""

    def __init__(self) -> None:
        super().__init__()
        self.crashes: list[Crash] = []
        self.note: Callable[[], object] = lambda: None
        self.on_disk: dict[str, bytes] = {}
        """The contents after a loss of power, by the surviving names."""

    def step(self, step: str) -> None:
        note, directories = self.note(), set(self.directories)
        synced = {path: self.synced.get(path, b"") for path in self.files}
        written = {path: bytes(content) for path, content in self.files.items()}
        self.crashes += [
            Crash(f"{step}, killed", note, written, directories),
            Crash(f"{step}, power lost", note, dict(self.on_disk), directories),
            Crash(f"{step}, power lost later", note, synced, directories),
        ]

    def content_synced(self, path: str) -> None:
        if path in self.on_disk:
            self.on_disk[path] = self.synced[path]

    def open(self, path: str, *, create: bool) -> MemoryFile:
        is_new = path not in self.files
        super().open(path, create=create).close()
        if is_new:
            self.step(f"create {path}")
        return SteppedFile(self, path)

    def remove(self, path: str) -> None:
        super().remove(path)
        self.synced.pop(path, None)
        self.step(f"remove {path}")

    def rename(self, source: str, target: str) -> None:
        super().rename(source, target)
        self.step(f"rename {source}")

    def sync_directory(self, path: str) -> None:
        super().sync_directory(path)
        for name in [name for name in self.on_disk if name.rpartition("/")[0] == path]:
            del self.on_disk[name]
        names = [name for name in self.files if name.rpartition("/")[0] == path]
        self.on_disk |= {name: self.synced.get(name, b"") for name in names}
        self.step(f"sync directory {path}")

    def _replace_whole(self, path: str, data: bytes) -> None:
        temporary = f"{path}.tmp"
        self.files[temporary] = bytearray()
        self.synced.pop(temporary, None)
        file = self.open(temporary, create=True)
        file.write([data])
        file.sync()
        file.close()
        self.rename(temporary, path)
        self.sync_directory(path.rpartition("/")[0])
