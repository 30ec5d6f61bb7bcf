"""A disk that keeps no more than a real one promises to keep, and fails on command.

Written data is in the page cache, and reaches the disk when the file is synced. A created, renamed or removed
file is durable once its directory is synced. The end of a process loses nothing of that. A loss of power
(`lose_power`) keeps the durable state. Of the rest the random generator keeps nothing, all, or a part with
zeros up to the end of its last sector.

A `SimulatedFileSystem` is one process's access to the disk. Every call is a numbered operation, so that a
crash can happen in the middle of any of them (`crash_at`), and it may fail as `DiskFaults` says.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import ParamSpec, TypeVar

from barnabas.protocol.varint import Buffer
from barnabas.storage.errors import DirectoryLocked
from barnabas.storage.filesystem import DiskSpace
from tests.simulation.trace import Trace
from tests.simulation.virtual_loop import Killed, Process, VirtualLoop

P = ParamSpec("P")
T = TypeVar("T")

_NS_PER_MS = 1_000_000
_SECTOR_BYTES = 512
_QUICK_MS_MAX = 0.4


class FileNode:
    """A file's bytes: `content` is the view of processes, `durable` remains after a loss of power."""

    def __init__(self) -> None:
        self.content = bytearray()
        self.durable = bytearray()
        self.changed_from = 0
        """Below this position the two are the same."""

    def append(self, data: bytes) -> None:
        self.changed_from = min(self.changed_from, len(self.content))
        self.content += data

    def truncate(self, size: int) -> None:
        del self.content[size:]
        self.changed_from = min(self.changed_from, size)

    def sync(self) -> None:
        self.durable[self.changed_from :] = self.content[self.changed_from :]
        self.changed_from = len(self.content)

    def lose_power(self, random: Random) -> None:
        """Becomes the durable state plus a random part of the unsynced data, or none."""
        written = bytes(self.content[self.changed_from :])
        fate = random.choice(("lost", "kept", "torn"))
        if fate == "kept":
            self.durable[self.changed_from :] = written
        elif fate == "torn" and written:
            kept_bytes = random.randrange(len(written))
            zeros = min(len(written) - kept_bytes, random.choice((0, _SECTOR_BYTES)))
            self.durable[self.changed_from :] = written[:kept_bytes] + bytes(zeros)
        self.content = bytearray(self.durable)
        self.changed_from = len(self.content)


class DirectoryNode:
    """Names and the entries they refer to. `history` has the states since the last sync, the durable one
    first.
    """

    def __init__(self) -> None:
        self.entries: dict[str, FileNode | DirectoryNode] = {}
        self.history: list[dict[str, FileNode | DirectoryNode]] = [{}]

    def note_change(self) -> None:
        self.history.append(dict(self.entries))

    def sync(self) -> None:
        self.history = [dict(self.entries)]

    def lose_power(self, random: Random) -> None:
        """Changes since the last sync reach the disk in their order, up to a random one."""
        self.entries = dict(random.choice(self.history))
        self.sync()
        for node in self.entries.values():
            node.lose_power(random)


@dataclass(slots=True)
class DiskFaults:
    """The present faults. A path is affected if it contains the given text."""

    failing_path: str | None = None
    """Writes, syncs and truncations of such files fail with EIO; a part of the write happens."""
    unreadable_path: str | None = None
    """Reads of such files fail with EIO."""
    free_bytes: int | None = None
    """The free space. A larger write fails with ENOSPC after it has filled the space; None for an unlimited
    disk.
    """
    slow_ms: float = 0.0
    """The additional duration of every operation."""


@dataclass(slots=True)
class Disk:
    """The disk's content, which exists before the first process and after the last one."""

    random: Random
    trace: Trace
    root: DirectoryNode = field(default_factory=DirectoryNode)
    faults: DiskFaults = field(default_factory=DiskFaults)
    locks: dict[str, Process] = field(default_factory=dict[str, Process])
    operation_count: int = 0
    crash_at: int | None = None
    """The number of the operation during which the process ends, before or after its effect."""
    on_crash: Callable[[], None] = lambda: None

    def make_durable_directory(self, path: str) -> None:
        """Creates a directory on behalf of the machine's owner."""
        _, node = make_path(self.root, path)
        for directory in (self.root, node):
            directory.sync()

    def lose_power(self) -> None:
        """Keeps the durable state, and a random part of the rest. No process may be running."""
        self.locks.clear()
        self.root.lose_power(self.random)

    def flip_bit(self, path_part: str, suffixes: tuple[str, ...]) -> str | None:
        """Flips one durable bit of a file whose path contains this text; returns the path, or None without
        such a file.
        """
        found = [
            (path, node)
            for path, node in walk(self.root)
            if path_part in path and path.endswith(suffixes) and node.content
        ]
        if not found:
            return None
        path, node = self.random.choice(found)
        position = self.random.randrange(len(node.content))
        mask = 1 << self.random.randrange(8)
        node.content[position] ^= mask
        if position < len(node.durable):
            node.durable[position] ^= mask
        return f"{path} at {position}"


def walk(directory: DirectoryNode, path: str = "") -> Iterator[tuple[str, FileNode]]:
    """Every file below, with its path."""
    for name, node in directory.entries.items():
        if isinstance(node, FileNode):
            yield f"{path}/{name}", node
        else:
            yield from walk(node, f"{path}/{name}")


def find(root: DirectoryNode, path: str) -> FileNode | DirectoryNode | None:
    node: FileNode | DirectoryNode | None = root
    for name in path.strip("/").split("/"):
        if not isinstance(node, DirectoryNode):
            return None
        node = node.entries.get(name)
    return node


def make_path(root: DirectoryNode, path: str) -> tuple[bool, DirectoryNode]:
    """Creates the directory and its missing parents; returns whether anything was created."""
    directory, is_new = root, False
    for name in path.strip("/").split("/"):
        node = directory.entries.get(name)
        if node is None:
            node = directory.entries[name] = DirectoryNode()
            directory.note_change()
            is_new = True
        assert isinstance(node, DirectoryNode), path
        directory = node
    return is_new, directory


class SimulatedFile:
    """One open file."""

    def __init__(self, filesystem: SimulatedFileSystem, path: str, node: FileNode) -> None:
        self._filesystem = filesystem
        self._path = path
        self._node = node

    def write(self, buffers: Sequence[Buffer]) -> None:
        data = b"".join(buffers)
        with self._filesystem.operation("write", self._path, len(data)):
            room = self._filesystem.room_for(self._path, len(data))
            self._node.append(data[:room])
            if room < len(data):
                raise self._filesystem.write_error(self._path)

    def read(self, position: int, size: int) -> bytes:
        self._filesystem.check_alive()
        self._filesystem.check_readable(self._path)
        return bytes(self._node.content[position : position + size])

    def truncate(self, size: int) -> None:
        with self._filesystem.operation("truncate", self._path, size):
            self._filesystem.check_writable(self._path)
            assert size <= len(self._node.content), "never extends"
            self._node.truncate(size)

    def sync(self) -> None:
        with self._filesystem.operation("sync", self._path):
            self._filesystem.check_writable(self._path)
            self._node.sync()

    def size(self) -> int:
        self._filesystem.check_alive()
        return len(self._node.content)

    def close(self) -> None:
        pass


class SimulatedLock:
    def __init__(self, locks: dict[str, Process], path: str) -> None:
        self._locks, self._path = locks, path

    def release(self) -> None:
        self._locks.pop(self._path, None)


class SimulatedFileSystem:
    """One process's view of the disk (`barnabas.storage.filesystem.FileSystem`)."""

    def __init__(self, disk: Disk, process: Process, loop: VirtualLoop) -> None:
        self._disk = disk
        self._process = process
        self._loop = loop
        self._busy_ns = 0

    # The common part of every operation.

    def check_alive(self) -> None:
        if not self._process.alive:
            raise Killed

    @contextmanager
    def operation(self, name: str, path: str, size: int = 0) -> Generator[None]:
        """Surrounds each change: it is counted, and takes time.

        If the process has to end with this operation, it ends before or after the change, at random.
        """
        self.check_alive()
        disk = self._disk
        disk.operation_count += 1
        disk.trace.detail(f"{name} {path} {size}")
        self._busy_ns += int(disk.faults.slow_ms * _NS_PER_MS)
        is_last = disk.crash_at is not None and disk.operation_count >= disk.crash_at
        if is_last and disk.random.random() < 0.5:
            self._crash(name, path)
        yield
        if is_last:
            self._crash(name, path)

    def _crash(self, name: str, path: str) -> None:
        self._disk.crash_at = None
        self._disk.trace.event(f"the process ends at {name} {path}")
        self._disk.on_crash()
        raise Killed

    def room_for(self, path: str, size: int) -> int:
        """The number of bytes of a write that take effect."""
        faults = self._disk.faults
        if faults.failing_path is not None and faults.failing_path in path:
            return self._disk.random.randrange(size) if size else 0
        if faults.free_bytes is None:
            return size
        room = min(size, faults.free_bytes)
        faults.free_bytes -= room
        return room

    def write_error(self, path: str) -> OSError:
        failing = self._disk.faults.failing_path
        if failing is not None and failing in path:
            return OSError(errno.EIO, "input/output error", path)
        return OSError(errno.ENOSPC, "no space left on device", path)

    def check_writable(self, path: str) -> None:
        failing = self._disk.faults.failing_path
        if failing is not None and failing in path:
            raise OSError(errno.EIO, "input/output error", path)

    def check_readable(self, path: str) -> None:
        unreadable = self._disk.faults.unreadable_path
        if unreadable is not None and unreadable in path:
            raise OSError(errno.EIO, "input/output error", path)

    # `FileSystem`.

    def open(self, path: str, *, create: bool) -> SimulatedFile:
        self.check_alive()
        node = find(self._disk.root, path)
        if node is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            node = self._create(path)
        assert isinstance(node, FileNode), path
        return SimulatedFile(self, path, node)

    def _create(self, path: str) -> FileNode:
        with self.operation("create", path):
            self.check_writable(path)
            directory, name = self._parent(path)
            node = directory.entries[name] = FileNode()
            directory.note_change()
        return node

    def _parent(self, path: str) -> tuple[DirectoryNode, str]:
        parent, _, name = path.rpartition("/")
        directory = find(self._disk.root, parent)
        if not isinstance(directory, DirectoryNode):
            raise FileNotFoundError(errno.ENOENT, "no such directory", parent)
        return directory, name

    def exists(self, path: str) -> bool:
        self.check_alive()
        return find(self._disk.root, path) is not None

    def file_size(self, path: str) -> int:
        self.check_alive()
        node = find(self._disk.root, path)
        if not isinstance(node, FileNode):
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return len(node.content)

    def list_directory(self, path: str) -> list[str]:
        self.check_alive()
        node = find(self._disk.root, path)
        if not isinstance(node, DirectoryNode):
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        return sorted(node.entries)

    def disk_space(self, path: str) -> DiskSpace:
        self.check_alive()
        return DiskSpace(1 << 40, 1 << 39)

    def make_directory(self, path: str) -> None:
        with self.operation("make directory", path):
            make_path(self._disk.root, path)

    def remove(self, path: str) -> None:
        with self.operation("remove", path):
            directory, name = self._parent(path)
            if name not in directory.entries:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            del directory.entries[name]
            directory.note_change()

    def remove_tree(self, path: str) -> None:
        node = find(self._disk.root, path)
        if not isinstance(node, DirectoryNode):
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        for name in list(node.entries):
            self.remove(f"{path}/{name}")
        self.remove(path)

    def rename(self, source: str, target: str) -> None:
        with self.operation("rename", source):
            directory, name = self._parent(source)
            target_directory, target_name = self._parent(target)
            assert directory is target_directory, "only ever within one directory"
            if name not in directory.entries:
                raise FileNotFoundError(errno.ENOENT, "no such file", source)
            directory.entries[target_name] = directory.entries.pop(name)
            directory.note_change()

    def sync_directory(self, path: str) -> None:
        with self.operation("sync directory", path):
            node = find(self._disk.root, path)
            if not isinstance(node, DirectoryNode):
                raise FileNotFoundError(errno.ENOENT, "no such directory", path)
            node.sync()

    def lock(self, path: str) -> SimulatedLock:
        self.check_alive()
        holder = self._disk.locks.get(path)
        if holder is not None and holder.alive:
            raise DirectoryLocked(path, None)
        self._disk.locks[path] = self._process
        return SimulatedLock(self._disk.locks, path)

    def monotonic_ns(self) -> int:
        return self._loop.now_ns + self._busy_ns

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        await self._pass_time()
        result = function(*args, **kwargs)
        await self._pass_time()
        return result

    async def _pass_time(self) -> None:
        """The time until a thread is scheduled and its system calls return; usually none."""
        disk = self._disk
        await asyncio.sleep(disk.random.uniform(0, _QUICK_MS_MAX + disk.faults.slow_ms) / 1000)

    async def read_whole(self, path: str) -> bytes:
        return await self.run(self._read_whole, path)

    def _read_whole(self, path: str) -> bytes:
        file = self.open(path, create=False)
        return file.read(0, file.size())

    async def replace_whole(self, path: str, data: bytes) -> None:
        """Writes another file, syncs it, renames it and syncs the directory: each step is an operation of its
        own.
        """
        temporary = f"{path}.tmp"
        file = await self.run(self._write_anew, temporary, data)
        await self.run(file.sync)
        await self.run(self._put_in_place, temporary, path)

    def _write_anew(self, path: str, data: bytes) -> SimulatedFile:
        file = self.open(path, create=True)
        file.truncate(0)
        file.write([data])
        return file

    def _put_in_place(self, temporary: str, path: str) -> None:
        self.rename(temporary, path)
        self.sync_directory(path.rpartition("/")[0])
