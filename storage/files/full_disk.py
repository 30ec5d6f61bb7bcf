"""The condition that the file system under a data directory is full. This object is its only owner.

All parts report errors of the disk to `met`. The first error for lack of room begins the condition with one
line in the log. Other parts do not log such errors (`explains`), because their lines would add nothing. The
condition ends, with one line, when a small file can be written again and no write was refused for a while: a
disk with a few free bytes counts as full.
"""

from __future__ import annotations

import asyncio
import errno
from contextlib import closing, suppress

from barnabas.runtime.logging import get_logger
from barnabas.storage.errors import DiskFull
from barnabas.storage.filesystem import FileSystem

PROBE_FILE = ".room-probe"
"""Its name in the data directory; the next start removes one that a crash left."""
PROBE_BYTES = 64 * 1024
QUIET_SECONDS = 5.0
"""The time without a refused write before the condition ends."""

_CODES = (errno.ENOSPC, errno.EDQUOT)
_CAUSES_MAX = 10
"""The depth to which an error's causes are searched."""

logger = get_logger("log_directory")


class FullDisk:
    """The condition of one data directory. Used on the loop's thread only."""

    __slots__ = ("_filesystem", "_path", "_refused_at", "is_full")

    def __init__(self, filesystem: FileSystem, path: str) -> None:
        self.is_full = False
        self._filesystem = filesystem
        self._path = path
        self._refused_at = 0.0
        """The loop's time of the last refused write."""

    def explains(self, error: BaseException) -> bool:
        """Whether the error, which may be an old one, or one of its causes is a lack of room."""
        return _lack_of_room(error) is not None

    def met(self, error: BaseException) -> bool:
        """The same for an error that has just occurred: a lack of room begins the condition."""
        cause = _lack_of_room(error)
        if cause is None:
            return False
        self._refused_at = asyncio.get_running_loop().time()
        if not self.is_full:
            self.is_full = True
            logger.error(
                "the disk is full: records, acknowledgements and commits are refused",
                directory=self._path,
                reason=cause.strerror,
                remedy="free space on that file system, or enlarge it",
            )
        return True

    def refusal(self) -> DiskFull | None:
        """An error for requests that the condition makes impossible; None while the disk has room."""
        return DiskFull(f"There is no room left in {self._path}.") if self.is_full else None

    async def look_again(self) -> None:
        """Ends the condition if the disk has room again; the maintenance task calls it. Raises OSError."""
        if not self.is_full or asyncio.get_running_loop().time() < self._refused_at + QUIET_SECONDS:
            return
        try:
            await self._filesystem.run(self._probe)
        except OSError as error:
            if not self.met(error):
                raise
            return
        self.is_full = False
        logger.warning("the disk has room again", directory=self._path)

    def _probe(self) -> None:
        path = f"{self._path}/{PROBE_FILE}"
        try:
            with closing(self._filesystem.open(path, create=True)) as file:
                file.write([bytes(PROBE_BYTES)])
                file.sync()
        finally:
            with suppress(OSError):
                self._filesystem.remove(path)


def _lack_of_room(error: BaseException) -> OSError | None:
    cause: BaseException | None = error
    for _ in range(_CAUSES_MAX):
        if isinstance(cause, OSError) and cause.errno in _CODES:
            return cause
        if cause is None:
            return None
        cause = cause.__cause__
    return None
