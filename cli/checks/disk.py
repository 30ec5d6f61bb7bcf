"""Checks the data directory: the right to write, the free space, the file system, the speed of fsync."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

from barnabas.cli.checks.finding import Finding, failure, ok, warning
from barnabas.cli.process.directory_errors import explain, reason
from barnabas.storage.filesystem import DiskSpace, RealFileSystem

FREE_BYTES_MIN: Final = 100 * 1024 * 1024
FREE_BYTES_GOOD: Final = 2 * 1024 * 1024 * 1024
FSYNC_COUNT: Final = 16
FSYNC_BYTES: Final = 4096
FSYNC_MS_GOOD: Final = 20.0
"""A slower disk makes `log.flush=always` slow, and lets the other modes wait for the disk at times."""

_FILE_SYSTEM: Final = RealFileSystem()
_MS_PER_SECOND: Final = 1000
_MIB: Final = 1024 * 1024
_REMOTE: Final = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "ceph", "glusterfs"})
_IN_MEMORY: Final = frozenset({"tmpfs", "ramfs"})
_OF_A_CONTAINER: Final = frozenset({"overlay", "aufs"})


def check_directory(
    directory: str,
    mounts: Path = Path("/proc/mounts"),
    *,
    fsync: Callable[[int], None] = os.fsync,
    disk_space: Callable[[str], DiskSpace] = _FILE_SYSTEM.disk_space,
) -> Iterator[Finding]:
    """The findings about the data directory, or about its nearest existing parent."""
    place = _existing(Path(directory).absolute())
    probe = place / f".barnabas-doctor-{os.getpid()}"
    try:
        descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        remedy = explain(error, directory) or f"{reason(error)}."
        yield failure("data directory", f"{directory} cannot be written", remedy)
        return
    try:
        is_new = "" if place == Path(directory).absolute() else ", and will be created"
        yield ok("data directory", f"{directory} can be written{is_new}")
        yield _check_fsync(descriptor, fsync)
    finally:
        os.close(descriptor)
        probe.unlink()
    yield _check_space(disk_space(str(place)))
    yield _check_file_system(place, mounts)


def file_system_of(place: Path, mounts: str) -> str | None:
    """The type of the file system that holds the path, from the text of /proc/mounts; None if unknown."""
    found: tuple[int, str] | None = None
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) < 3:
            continue
        mounted = Path(fields[1].replace("\\040", " "))
        depth = len(mounted.parts)
        if place.is_relative_to(mounted) and (found is None or depth >= found[0]):
            found = depth, fields[2]
    return None if found is None else found[1]


def _existing(path: Path) -> Path:
    while not os.access(path, os.F_OK) and path != path.parent:
        path = path.parent
    return path


def _check_fsync(descriptor: int, fsync: Callable[[int], None]) -> Finding:
    times_ms: list[float] = []
    try:
        for _ in range(FSYNC_COUNT):
            os.write(descriptor, bytes(FSYNC_BYTES))
            begun = perf_counter()
            fsync(descriptor)
            times_ms.append((perf_counter() - begun) * _MS_PER_SECOND)
    except OSError as error:
        return failure("fsync", f"the disk fails: {reason(error)}", "Use another disk.")
    detail = f"{median(times_ms):.1f} ms in the median, {max(times_ms):.1f} ms at most, of {FSYNC_COUNT}"
    if median(times_ms) <= FSYNC_MS_GOOD:
        return ok("fsync", detail)
    return warning(
        "fsync",
        detail,
        "Use a faster disk, or keep log.flush=interval, which waits for the disk only once a second.",
    )


def _check_space(space: DiskSpace) -> Finding:
    free_bytes = space.usable_bytes
    detail = f"{free_bytes // _MIB:,} MiB of {space.total_bytes // _MIB:,} MiB are free"
    if free_bytes >= FREE_BYTES_GOOD:
        return ok("free space", detail)
    remedy = "Make room, or bound the logs with log.retention.bytes and log.retention.ms."
    return (failure if free_bytes < FREE_BYTES_MIN else warning)("free space", detail, remedy)


def _check_file_system(place: Path, mounts: Path) -> Finding:
    try:
        kind = file_system_of(place, mounts.read_text())
    except OSError:
        kind = None
    if kind is None:
        return ok("file system", "its type is unknown on this system")
    if kind in _IN_MEMORY:
        return warning("file system", f"{kind} is memory", "Use a directory on a disk if data must last.")
    if kind in _OF_A_CONTAINER:
        return warning(
            "file system",
            f"{kind} is the layer of a container, and is deleted with it",
            "Mount a volume at the data directory.",
        )
    if kind in _REMOTE:
        return warning(
            "file system",
            f"{kind} is a network file system",
            "Prefer a local disk: a lost server makes all logs fail, and fsync may promise too much.",
        )
    return ok("file system", kind)
