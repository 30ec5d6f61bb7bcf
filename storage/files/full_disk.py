"""Whether the file system under a data directory is full: the one owner of that condition.

Whatever meets an error of the disk tells `met`. The first error for lack of room begins the condition with
one line in the log. What other parts would log about such errors adds nothing and is left out (`explains`).
The condition ends, with one line, when a small file can be written again and no write was refused for a
while: a disk that hovers around its last bytes is full.
"""

from __future__ import annotations

import asyncio
import errno
from contextlib import closing, suppress

from barnabas.runtime.logging import get_logger
from barnabas.storage.errors import DiskFull
from barnabas.storage.filesystem import FileSystem

PROBE_FILE = ".room-probe"
"""In the data directory; one that a crash left is removed by the next start."""
PROBE_BYTES = 64 * 1024
QUIET_SECONDS = 5.0
"""So long no write may have been refused before the condition ends."""

_CODES = (errno.ENOSPC, errno.EDQUOT)
_CAUSES_MAX = 10
"""How deep an error's causes are looked at."""

logger = get_logger("log_directory")


class FullDisk:
    """The condition of one data directory. To be used on the loop's thread."""

    __slots__ = ("_filesystem", "_path", "_refused_at", "is_full")

    def __init__(self, filesystem: FileSystem, path: str) -> None:
        self.is_full = False
        self._filesystem = filesystem
        self._path = path
        self._refused_at = 0.0
        """When a write was refused last, by the loop's time."""

    def explains(self, error: BaseException) -> bool:
        """Whether the error, which may be an old one, or one of its causes was a lack of room."""
        return _lack_of_room(error) is not None

    def met(self, error: BaseException) -> bool:
        """The same of an error that has just occurred: then the condition holds from now on."""
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
        """What to answer while the condition holds where nothing else tells why something cannot be done."""
        return DiskFull(f"There is no room left in {self._path}.") if self.is_full else None

    async def look_again(self) -> None:
        """Ends the condition if there is room again; to be called from time to time. Raises OSError."""
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
