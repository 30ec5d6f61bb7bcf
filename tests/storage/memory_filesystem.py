"""A filesystem in memory that fails, stalls and loses data on command.

`run` calls its function at once, or after `hold` only when `release` is called: so a test can act while a
write is under way. The clock stands still, except that each write takes `write_ns`.
"""

from __future__ import annotations

import asyncio
import errno
from collections import Counter
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

from barnabas.protocol.varint import Buffer
from barnabas.storage.errors import DirectoryLocked
from barnabas.storage.filesystem import DiskSpace

P = ParamSpec("P")
T = TypeVar("T")


class MemoryFile:
    def __init__(self, filesystem: MemoryFileSystem, path: str) -> None:
        self._filesystem = filesystem
        self._path = path
        self._content = filesystem.files[path]
        self.closed = False
        filesystem.open_count += 1

    def write(self, buffers: Sequence[Buffer]) -> None:
        assert not self.closed, "written through a closed handle"
        filesystem = self._filesystem
        filesystem.now_ns += filesystem.write_ns
        filesystem.write_count += 1
        data = b"".join(buffers)
        if filesystem.write_error is not None and self._path.endswith(filesystem.failing_suffix):
            self._content += data[: filesystem.written_before_error]
            raise OSError(filesystem.write_error, "the disk says no")
        self._content += data

    def read(self, position: int, size: int) -> bytes:
        assert not self.closed, "read through a closed handle"
        if self._filesystem.read_error is not None and self._path.endswith(self._filesystem.failing_suffix):
            raise OSError(self._filesystem.read_error, "the disk cannot read")
        data = bytes(self._content[position : position + size])
        self._filesystem.read_count += 1
        self._filesystem.read_bytes[self._path] += len(data)
        return data

    def truncate(self, size: int) -> None:
        assert not self.closed, "cut through a closed handle"
        if self._filesystem.truncate_error is not None:
            raise OSError(self._filesystem.truncate_error, "the disk says no")
        assert size <= len(self._content), "never extends"
        del self._content[size:]

    def sync(self) -> None:
        assert not self.closed, "synced through a closed handle"
        if self._filesystem.sync_error is not None and self._path.endswith(self._filesystem.failing_suffix):
            raise OSError(self._filesystem.sync_error, "the disk forgot")
        self._filesystem.synced[self._path] = bytes(self._content)
        self._filesystem.sync_count += 1

    def size(self) -> int:
        return len(self._content)

    def close(self) -> None:
        assert not self.closed, "closed once"
        self.closed = True
        self._filesystem.open_count -= 1


class MemoryLock:
    def __init__(self, held: set[str], path: str) -> None:
        self._held, self._path = held, path
        held.add(path)

    def release(self) -> None:
        self._held.remove(self._path)


class MemoryFileSystem:
    """Files by path. `synced` is the content of each after a loss of power."""

    def __init__(self) -> None:
        self.files: dict[str, bytearray] = {}
        self.directories: set[str] = {""}
        self.synced: dict[str, bytes] = {}
        self.durable_entries: set[str] = set()
        """Files whose names survive a loss of power."""
        self.locks: set[str] = set()
        self.write_error: int | None = None
        self.written_before_error = 0
        self.failing_suffix = ""
        self.truncate_error: int | None = None
        self.sync_error: int | None = None
        self.read_error: int | None = None
        self.create_error: int | None = None
        """The errno of creating a file whose path ends with `failing_suffix`."""
        self.descriptors_max: int | None = None
        """The most open files; opening another one fails with EMFILE."""
        self.write_ns = 0
        self.now_ns = 0
        self.open_count = self.write_count = self.read_count = self.sync_count = self.run_count = 0
        self.read_bytes: Counter[str] = Counter()
        """The bytes that were read of each file."""
        self._held: asyncio.Event | None = None
        self._awaited: dict[str, asyncio.Event] = {}

    def hold(self) -> None:
        """From now on calls of `run` wait for `release`."""
        self._held = asyncio.Event()

    def release(self) -> None:
        assert self._held is not None
        self._held.set()
        self._held = None

    def replacement_of(self, path: str) -> asyncio.Event:
        """An event that the next replacement of the file sets."""
        return self._awaited.setdefault(path, asyncio.Event())

    def after_power_loss(self) -> MemoryFileSystem:
        """A filesystem after a loss of power: synced names, with synced contents."""
        left = MemoryFileSystem()
        left.directories = set(self.directories)
        left.durable_entries = self.durable_entries & set(self.files)
        left.synced = {path: self.synced.get(path, b"") for path in left.durable_entries}
        left.files = {path: bytearray(content) for path, content in left.synced.items()}
        return left

    def copy(self) -> MemoryFileSystem:
        """A filesystem after the end of the process: everything that was written."""
        left = MemoryFileSystem()
        left.directories = set(self.directories)
        left.files = {path: bytearray(content) for path, content in self.files.items()}
        left.synced = dict(self.synced)
        left.durable_entries = set(self.durable_entries)
        return left

    def open(self, path: str, *, create: bool) -> MemoryFile:
        if self.descriptors_max is not None and self.open_count >= self.descriptors_max:
            raise OSError(errno.EMFILE, "Too many open files", path)
        if path not in self.files:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            assert path.rpartition("/")[0] in self.directories, path
            if self.create_error is not None and path.endswith(self.failing_suffix):
                raise OSError(self.create_error, "the disk says no", path)
            self.files[path] = bytearray()
        return MemoryFile(self, path)

    def exists(self, path: str) -> bool:
        return path in self.files or path in self.directories

    def file_size(self, path: str) -> int:
        return len(self.files[path])

    def list_directory(self, path: str) -> list[str]:
        inside = [name for name in (*self.files, *self.directories) if name.rpartition("/")[0] == path]
        return sorted(name.rpartition("/")[2] for name in inside if name)

    def disk_space(self, path: str) -> DiskSpace:
        return DiskSpace(1 << 40, (1 << 40) - sum(map(len, self.files.values())))

    def make_directory(self, path: str) -> None:
        while path:
            self.directories.add(path)
            path = path.rpartition("/")[0]

    def remove(self, path: str) -> None:
        del self.files[path]

    def remove_tree(self, path: str) -> None:
        for name in [name for name in self.files if name.startswith(f"{path}/")]:
            del self.files[name]
        self.directories.remove(path)

    def rename(self, source: str, target: str) -> None:
        if source in self.files:
            self.files[target] = self.files.pop(source)
            self.synced[target] = self.synced.pop(source, b"")
            if source in self.durable_entries:
                self.durable_entries.add(target)
            return
        if source not in self.directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", source)
        self.directories.remove(source)
        self.directories.add(target)
        for name in [name for name in self.files if name.startswith(f"{source}/")]:
            renamed = target + name.removeprefix(source)
            self.files[renamed] = self.files.pop(name)
            self.synced[renamed] = self.synced.pop(name, b"")
            if name in self.durable_entries:
                self.durable_entries.add(renamed)

    def sync_directory(self, path: str) -> None:
        assert path in self.directories, path
        if self.sync_error is not None and path.endswith(self.failing_suffix):
            raise OSError(self.sync_error, "the disk forgot")
        self.durable_entries.update(name for name in self.files if name.rpartition("/")[0] == path)

    def lock(self, path: str) -> MemoryLock:
        if path in self.locks:
            raise DirectoryLocked(path, 4711)
        return MemoryLock(self.locks, path)

    def monotonic_ns(self) -> int:
        return self.now_ns

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._held is not None:
            await self._held.wait()
        self.run_count += 1
        return function(*args, **kwargs)

    async def read_whole(self, path: str) -> bytes:
        return await self.run(self._read_whole, path)

    def _read_whole(self, path: str) -> bytes:
        return bytes(self.files[path])

    async def replace_whole(self, path: str, data: bytes) -> None:
        await self.run(self._replace_whole, path, data)

    def _replace_whole(self, path: str, data: bytes) -> None:
        if self.sync_error is not None and path.endswith(self.failing_suffix):
            raise OSError(self.sync_error, "the disk forgot")
        self.files[path] = bytearray(data)
        self.synced[path] = data
        self.durable_entries.add(path)
        if path in self._awaited:
            self._awaited.pop(path).set()
