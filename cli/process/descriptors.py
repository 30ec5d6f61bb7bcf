"""Divides the process's file descriptors (RLIMIT_NOFILE) between segments and connections.

The process itself keeps a part. Open segments get at most half of the rest, because a closed segment is
opened again when it is needed, while a client without a connection is not served. Connections get the
remainder; a further connection is closed at once.
"""

import resource
import sys
from typing import Final, NamedTuple

from barnabas.runtime.worker_threads import WORKER_THREADS
from barnabas.storage.log_config import StorageConfig

SEGMENTS_MAX: Final = StorageConfig().open_files_max
"""More open segments are never needed."""

SHARE_MIN: Final = 8
"""The least segments and connections, even if the limit has no room for them. If opening a file fails then,
other segments are closed.
"""

_OWN: Final = 32
"""For standard streams, the event loop, listeners, and the lock of the data directory."""

_PER_THREAD: Final = 10
"""For a thread that recovers a log: 8 segments, and an index or a directory."""


class DescriptorShares(NamedTuple):
    """The most open segments, and the most open connections."""

    segments: int
    connections: int


def reserved_descriptors() -> int:
    """The descriptors that the process itself keeps."""
    return _OWN + _PER_THREAD * WORKER_THREADS


def divide_descriptors(limit: int) -> DescriptorShares:
    """The shares of `limit` descriptors."""
    rest = limit - reserved_descriptors()
    segments = max(min(SEGMENTS_MAX, rest // 2), SHARE_MIN)
    return DescriptorShares(segments, max(rest - segments, SHARE_MIN))


def raise_limit() -> int:
    """Raises the soft limit to the hard one, if the system allows it; returns the resulting limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):  # macOS refuses an unlimited soft limit
        limit = soft
    else:
        limit = hard
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit


def warning(limit: int) -> str | None:
    """A warning for the start if the limit is small; None if it has room for all segments."""
    shares = divide_descriptors(limit)
    if shares.segments >= SEGMENTS_MAX:
        return None
    enough = 2 * SEGMENTS_MAX + reserved_descriptors()
    return (
        f"This process may open {limit} files at most (RLIMIT_NOFILE), so no more than {shares.segments} "
        f"segments stay open and {shares.connections} clients can connect. Allow {enough} or more with "
        "ulimit -Hn, LimitNOFILE= of systemd, or --ulimit nofile= of Docker."
    )
