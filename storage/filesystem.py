"""The seam to the disk: the protocols of a filesystem and its files, and the real filesystem.

All disk access uses these protocols, so that tests and simulations can use a filesystem that fails, tears
writes and loses data on command. The plain methods block: page-cache reads and small appends run on the
loop's thread, the rest through `run` (docs/decisions/0004). The coroutines `read_whole` and `replace_whole`
are for small whole files, such as checkpoints, and use aiofiles (docs/decisions/0019).
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import shutil
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Literal, NamedTuple, ParamSpec, Protocol, TypeVar

import aiofiles

from barnabas.protocol.varint import Buffer
from barnabas.runtime.worker_threads import worker_threads
from barnabas.storage.errors import DirectoryLocked

P = ParamSpec("P")
T = TypeVar("T")

_BUFFERS_PER_WRITE_MAX = min(os.sysconf("SC_IOV_MAX"), 1024)


class Readable(Protocol):
    """Bytes that can be read at a position."""

    def read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position` on, fewer only at the end of the file; raises OSError."""
        ...


class File(Readable, Protocol):
    """An open file that only grows at its end. Every method raises OSError."""

    def write(self, buffers: Sequence[Buffer]) -> None:
        """Appends all the bytes of all the buffers; after an error any part of them may be there."""
        ...

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None:
        """Returns once all written bytes survive a loss of power. An error leaves their state unknown
        forever.

        Several threads may call it. After an error every call fails, without asking the disk again.
        """
        ...

    def size(self) -> int: ...

    def close(self) -> None: ...


class FileLock(Protocol):
    """A lock held on a file until released."""

    def release(self) -> None: ...


class DiskSpace(NamedTuple):
    """The size of a directory's disk and the bytes of it that may still be written."""

    total_bytes: int
    usable_bytes: int


class FileSystem(Protocol):
    """Files and directories by path, and threads for long calls. Every method raises OSError."""

    def open(self, path: str, *, create: bool) -> File:
        """Opens a file for reading and appending. `create` creates a missing one, else FileNotFoundError."""
        ...

    def exists(self, path: str) -> bool: ...

    def file_size(self, path: str) -> int: ...

    def list_directory(self, path: str) -> list[str]: ...

    def disk_space(self, path: str) -> DiskSpace: ...

    def make_directory(self, path: str) -> None:
        """Creates it and its parents, if missing."""
        ...

    def remove(self, path: str) -> None: ...

    def remove_tree(self, path: str) -> None: ...

    def rename(self, source: str, target: str) -> None: ...

    def sync_directory(self, path: str) -> None:
        """Makes the creation, removal and renaming of the directory's entries durable."""
        ...

    def lock(self, path: str) -> FileLock:
        """Takes an exclusive lock; DirectoryLocked if another broker, even in this process, holds it."""
        ...

    def monotonic_ns(self) -> int:
        """The clock for the duration of a write."""
        ...

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls `function` in a worker thread."""
        ...

    async def read_whole(self, path: str) -> bytes: ...

    async def replace_whole(self, path: str, data: bytes) -> None:
        """Replaces the file atomically and durably: a crash leaves the old content or the new."""
        ...


def read_whole(filesystem: FileSystem, path: str) -> bytes:
    """The content of a file. For a thread; raises OSError. Coroutines use the filesystem's `read_whole`."""
    with closing(filesystem.open(path, create=False)) as file:
        return file.read(0, file.size())


def replace_whole(filesystem: FileSystem, path: str, data: bytes) -> None:
    """Replaces a file atomically and durably. For a thread; raises OSError.

    Coroutines use the filesystem's `replace_whole`.
    """
    put_whole(filesystem, path, data)
    filesystem.sync_directory(path.rpartition("/")[0])


def replace_undurably(filesystem: FileSystem, path: str, data: bytes) -> None:
    """Replaces a file atomically. A loss of power may leave any content: it needs a checksum.

    For a thread; raises OSError.
    """
    temporary = f"{path}.tmp"
    with closing(filesystem.open(temporary, create=True)) as file:
        file.truncate(0)
        file.write([data])
    filesystem.rename(temporary, path)


def put_whole(filesystem: FileSystem, path: str, data: bytes) -> None:
    """As `replace_whole`, without syncing the directory: the caller does that later.

    Until then a loss of power may leave the old file under this name. The new content is durable already.
    """
    temporary = f"{path}.tmp"
    with closing(filesystem.open(temporary, create=True)) as file:
        file.truncate(0)
        file.write([data])
        file.sync()
    filesystem.rename(temporary, path)


class RealFile:
    """A file of the operating system."""

    __slots__ = ("_descriptor", "_sync_error", "_sync_lock")

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._sync_lock = Lock()
        self._sync_error: OSError | None = None

    def write(self, buffers: Sequence[Buffer]) -> None:
        for start in range(0, len(buffers), _BUFFERS_PER_WRITE_MAX):
            some = buffers[start : start + _BUFFERS_PER_WRITE_MAX]
            written_bytes = os.writev(self._descriptor, some)
            if written_bytes < sum(map(len, some)):
                self._write_rest(b"".join(some)[written_bytes:])

    def _write_rest(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def read(self, position: int, size: int) -> bytes:
        data = os.pread(self._descriptor, size, position)
        if len(data) == size or not data:
            return data
        parts = [data]
        missing = size - len(data)
        while missing and (data := os.pread(self._descriptor, missing, position + size - missing)):
            parts.append(data)
            missing -= len(data)
        return b"".join(parts)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def sync(self) -> None:
        """One call at a time: the system reports lost pages to one caller only, and then forgets them."""
        with self._sync_lock:
            if self._sync_error is not None:
                raise OSError(errno.EIO, "an earlier fsync of this file failed") from self._sync_error
            try:
                _sync_data(self._descriptor)
            except OSError as error:
                self._sync_error = OSError(*error.args)  # without the frames of this one
                self._drop_cache()
                raise

    def _drop_cache(self) -> None:
        """Drops the cached pages, which count as clean although they never reached the disk.

        So recovery reads the disk's content.
        """
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_DONTNEED)

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def close(self) -> None:
        os.close(self._descriptor)


_sync_data = os.fdatasync if hasattr(os, "fdatasync") else os.fsync


class RealFileLock:
    """An advisory lock, which the operating system releases when the process ends for any reason."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        os.close(self._descriptor)


class RealFileSystem:
    """The operating system's filesystem; `run` uses the process's bounded pool of threads."""

    def open(self, path: str, *, create: bool) -> RealFile:
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return RealFile(os.open(path, flags, 0o644))

    def exists(self, path: str) -> bool:
        return Path(path).exists()

    def file_size(self, path: str) -> int:
        return Path(path).stat().st_size

    def list_directory(self, path: str) -> list[str]:
        return sorted(os.listdir(path))  # noqa: PTH208  names, not paths

    def disk_space(self, path: str) -> DiskSpace:
        status = os.statvfs(path)
        return DiskSpace(status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize)

    def make_directory(self, path: str) -> None:
        Path(path).mkdir(parents=True, exist_ok=True)

    def remove(self, path: str) -> None:
        Path(path).unlink()

    def remove_tree(self, path: str) -> None:
        shutil.rmtree(path)

    def rename(self, source: str, target: str) -> None:
        Path(source).rename(target)

    def sync_directory(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def lock(self, path: str) -> RealFileLock:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Apache Kafka takes this lock. The lock above excludes other brokers of the same process.
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError) as error:
            holder = os.pread(descriptor, 20, 0)
            os.close(descriptor)
            raise DirectoryLocked(path, int(holder) if holder.isdigit() else None) from error
        os.ftruncate(descriptor, 0)
        os.write(descriptor, b"%d" % os.getpid())
        return RealFileLock(descriptor)

    monotonic_ns = staticmethod(time.perf_counter_ns)

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        call = partial(function, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(worker_threads(), call)

    async def read_whole(self, path: str) -> bytes:
        async with _opened(path, "rb") as file:
            data: bytes = await file.read()
            return data

    async def replace_whole(self, path: str, data: bytes) -> None:
        temporary = f"{path}.tmp"
        async with _opened(temporary, "wb") as file:
            await file.write(data)
            await file.flush()
            await self.run(os.fsync, file.fileno())
        await self.run(self._put_in_place, temporary, path)

    def _put_in_place(self, temporary: str, path: str) -> None:
        self.rename(temporary, path)
        self.sync_directory(str(Path(path).parent))


@asynccontextmanager
async def _opened(path: str, mode: Literal["rb", "wb"]) -> AsyncGenerator[Any]:
    """A file of aiofiles, whose own context manager would close it in another, new thread."""
    file = await aiofiles.open(path, mode, executor=worker_threads())
    try:
        yield file
    finally:
        await file.close()
