"""How the process shares out its file descriptors (RLIMIT_NOFILE) between segments and connections.

A part is set aside for the process itself. Of the rest, at most half goes to open segments: a segment that is
closed is opened again when it is needed, while a client without a connection is not served. Connections get
what is left; one more is closed at once.
"""

import resource
import sys
from typing import Final, NamedTuple

from barnabas.runtime.worker_threads import WORKER_THREADS
from barnabas.storage.log_config import StorageConfig

SEGMENTS_MAX: Final = StorageConfig().open_files_max
"""More open segments than this gain nothing, whatever the limit."""

SHARE_MIN: Final = 8
"""Segments and connections that are allowed even if the limit has no room for them: opening fails then, and
other segments are closed for it."""

_OWN: Final = 32
"""Standard streams, the loop's own, listeners, the lock of the data directory."""

_PER_THREAD: Final = 10
"""A thread that recovers a log has 8 segments open, and an index or a directory."""


class DescriptorShares(NamedTuple):
    """How many segments, and how many connections, may be open at a time."""

    segments: int
    connections: int


def set_aside() -> int:
    """Descriptors for neither segments nor connections."""
    return _OWN + _PER_THREAD * WORKER_THREADS


def share_out(limit: int) -> DescriptorShares:
    """The shares under a limit of so many descriptors."""
    rest = limit - set_aside()
    segments = max(min(SEGMENTS_MAX, rest // 2), SHARE_MIN)
    return DescriptorShares(segments, max(rest - segments, SHARE_MIN))


def raise_limit() -> int:
    """Raises the soft limit to the hard one, if the system lets us; answers the limit that holds."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):  # macOS: "unlimited" is more than it allows
        limit = soft
    else:
        limit = hard
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit


def warning(limit: int) -> str | None:
    """What to say at the start if the limit is small; None if it has room for all segments."""
    shares = share_out(limit)
    if shares.segments >= SEGMENTS_MAX:
        return None
    enough = 2 * SEGMENTS_MAX + set_aside()
    return (
        f"This process may open {limit} files at most (RLIMIT_NOFILE), so no more than {shares.segments} "
        f"segments stay open and {shares.connections} clients can connect. Allow {enough} or more: with "
        "ulimit -Hn, LimitNOFILE= of systemd, or --ulimit nofile= of Docker."
    )
