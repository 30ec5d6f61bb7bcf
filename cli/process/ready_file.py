"""The ready file: it exists, with the broker's addresses in it, exactly while the broker serves.

A killed broker leaves the file behind. The next start removes it, also if it fails to open the data
directory; except if another broker uses the directory, because the file may be that broker's.
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
    """The data directory is opened in the block. Removes the file of an earlier broker, unless another broker
    uses the directory.
    """
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
    """Removes the file of an earlier broker, if there is one; raises OSError."""
    if path is not None:
        Path(path).unlink(missing_ok=True)


@contextmanager
def ready_file(path: str | None, addresses: str) -> Generator[None]:
    """Creates the file for the time of the block, if `path` is not None; raises OSError."""
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
    """The file is renamed from this path once it is complete, so that no program reads half an address."""
    return Path(f"{path}.tmp")
