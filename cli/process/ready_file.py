"""A file that is there, with the broker's addresses in it, exactly while the broker serves.

A broker that was killed leaves it behind: it goes when the next one opens the data directory, or cannot, but
for a directory that another broker is at work in: the file may be that one's.
"""

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from barnabas.runtime.logging import get_logger
from barnabas.storage.errors import DirectoryLocked

log = get_logger("ready_file")


def check_ready_file(path: str) -> None:
    """Raises OSError if the file cannot be written."""
    if Path(path).is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    unfinished = _unfinished(path)
    unfinished.touch()
    unfinished.unlink()


@contextmanager
def without_old_ready_file(path: str | None) -> Generator[None]:
    """Opens the data directory in the block; removes what an earlier broker left, unless one is at work."""
    is_ours = True
    try:
        yield
    except DirectoryLocked:
        is_ours = False
        raise
    finally:
        if is_ours:
            remove_old_ready_file(path)


def remove_old_ready_file(path: str | None) -> None:
    """Removes what an earlier broker left, if anything; raises OSError."""
    if path is not None:
        Path(path).unlink(missing_ok=True)


@contextmanager
def ready_file(path: str | None, addresses: str) -> Generator[None]:
    """Has the file, if one is wanted, for as long as the block runs; raises OSError if that cannot be."""
    if path is None:
        yield
        return
    unfinished = _unfinished(path)
    unfinished.write_text(f"{addresses}\n")
    unfinished.replace(path)
    try:
        yield
    finally:
        try:
            Path(path).unlink(missing_ok=True)
        except OSError as error:
            log.warning("ready file not removed", path=path, reason=str(error))


def _unfinished(path: str) -> Path:
    """Renamed once it is whole, so that nobody reads half an address."""
    return Path(f"{path}.tmp")
