"""A file that is there, with the broker's addresses in it, exactly while the broker serves.

A broker that was killed leaves it behind: so it goes first of all when one starts, whatever comes of that.
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from barnabas.broker.logging import get_logger

log = get_logger("ready_file")


def prepare_ready_file(path: str) -> None:
    """Removes what an earlier broker left, and sees that the file can be written; raises OSError."""
    unfinished = _unfinished(path)
    unfinished.touch()
    unfinished.unlink()
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
