"""Texts for errors of the operating system; for those of a data directory with a remedy."""

from __future__ import annotations

import errno
import os
from pathlib import Path

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NOT_ALLOWED = (errno.EACCES, errno.EPERM)
_NO_DIRECTORY = (errno.ENOTDIR, errno.EEXIST)


def reason(error: Exception) -> str:
    """The error's text without a period, with the file's name if the error has one."""
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
    return str(error).removesuffix(".")


def explain(error: OSError, directory: str) -> str | None:
    """The error and its remedy; None for an error that does not concern the directory."""
    if error.errno in _NO_ROOM:
        return (
            f"There is no room left for {directory} on its disk. Make room, or name another with --data-dir."
        )
    if error.filename is None or not Path(error.filename).absolute().is_relative_to(_top(directory)):
        return None
    if error.errno == errno.EROFS:
        return f"{directory} is on a read-only filesystem. Name another directory with --data-dir."
    if error.errno in _NOT_ALLOWED:
        return _not_allowed(error, directory)
    if error.errno in _NO_DIRECTORY:
        return f"{_file_in_the_way(error.filename)} is a file, not a directory. Name another with --data-dir."
    return None


def _top(directory: str) -> Path:
    """The directory or its nearest accessible parent, because creating any directory below may have failed.

    `Path.exists` is not used, because it raises if a parent may not be searched.
    """
    path = Path(directory).absolute()
    while not os.access(path, os.F_OK) and path != path.parent:
        path = path.parent
    return path.parent if path.is_file() else path


def _file_in_the_way(name: str) -> Path:
    path = Path(name)
    return next((candidate for candidate in (path, *path.parents) if candidate.is_file()), path)


def _not_allowed(error: OSError, directory: str) -> str:
    user = os.geteuid()
    try:
        owner = f"belongs to user {_top(directory).stat().st_uid}"
    except OSError:
        owner = "cannot be inspected"
    command = f"chown -R {user} {directory}"
    if not os.access(directory, os.F_OK):
        command = f"mkdir -p {directory} && {command}"
    return (
        f"{error.filename} cannot be used by user {user}: {_top(directory)} {owner}. Start the broker as "
        f"that user, give it the directory ({command}), or name another with --data-dir."
    )
