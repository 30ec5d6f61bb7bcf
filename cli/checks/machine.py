"""Checks this machine: the port, the limit of open files, the memory, and the clock."""

from __future__ import annotations

import ctypes
import os
import resource
import socket
import sys
from pathlib import Path
from typing import Final

from barnabas.cli.checks.finding import Finding, failure, ok, warning
from barnabas.cli.process import descriptors

MEMORY_BYTES_GOOD: Final = 512 * 1024 * 1024
"""The broker, and queued.max.request.bytes."""

_MIB: Final = 1024 * 1024
_KIB: Final = 1024
_TIME_ERROR: Final = 5
"""The state of a clock that nothing synchronizes (adjtimex(2))."""
_TIMEX_BYTES: Final = 1024
"""More than the system's structure has."""


def check_port(host: str, port: int) -> Finding:
    """Whether a broker could listen there. `check_broker` looks at a port that is in use."""
    name = f"port {port}"
    if port == 0:
        return ok("port", "the system selects a free port")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM)[
            0
        ]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except socket.gaierror as error:
        return failure(
            "port", f"the host {host} is unknown: {error.strerror}", "Listen on an address that exists."
        )
    except PermissionError:
        return failure("port", f"{name} needs more rights", "Use a port from 1024 on.")
    except OSError as error:
        return failure(
            "port",
            f"{host}:{port} cannot be opened: {error.strerror}",
            f"End the program that uses it (ss -ltnp 'sport = :{port}'), or use another --listen.",
        )
    return ok("port", f"{host}:{port} is free")


def check_open_files() -> Finding:
    """The limit of open files after the broker has raised it."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limit = sys.maxsize if hard == resource.RLIM_INFINITY else hard
    said = descriptors.warning(limit)
    if said is None:
        return ok("open files", "unlimited" if limit == sys.maxsize else f"{limit:,} are allowed")
    first, _, remedy = said.rpartition(". Allow ")
    return warning("open files", first, f"Allow {remedy}")


def check_memory(root: Path = Path("/")) -> Finding:
    """The memory that is available, or the rest of the limit of this container if that is less."""
    available = [
        available_bytes
        for available_bytes in (_available_bytes(root), _left_in_cgroup(root))
        if available_bytes is not None
    ]
    if not available:
        return ok("memory", "its size is unknown on this system")
    detail = f"{min(available) // _MIB:,} MiB are available"
    if min(available) >= MEMORY_BYTES_GOOD:
        return ok("memory", detail)
    return warning(
        "memory",
        detail,
        f"Give the broker {MEMORY_BYTES_GOOD // _MIB} MiB, or lower queued.max.request.bytes.",
    )


def check_clock() -> Finding:
    """Whether something synchronizes the clock. Times of records, retention and locks depend on it."""
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    except (OSError, AttributeError):
        return ok("clock", "its synchronization is unknown on this system")
    if state < 0:
        return ok("clock", f"its synchronization is unknown: {os.strerror(ctypes.get_errno())}")
    if state == _TIME_ERROR:
        return warning(
            "clock",
            "nothing synchronizes it",
            "Run chrony, systemd-timesyncd or another NTP client, on the host of a container.",
        )
    return ok("clock", "synchronized")


def _available_bytes(root: Path) -> int | None:
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * _KIB
    return None


def _left_in_cgroup(root: Path) -> int | None:
    """None without a limit (cgroup v2)."""
    group = root / "sys/fs/cgroup"
    try:
        limit = (group / "memory.max").read_text().strip()
        used = int((group / "memory.current").read_text())
    except (OSError, ValueError):
        return None
    return None if limit == "max" else max(int(limit) - used, 0)
