"""The sources of a release: the files that git tracks, with their present contents, and their time."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from release.errors import ReleaseError


def copy_tracked_files(project: Path, target: Path) -> Path:
    """Copies the tracked files of `project` to the new folder `target`, and returns it.

    Links stay links, modes become 644 or 755: neither untracked files nor the umask of a checkout may change
    an artefact. Raises `ReleaseError` outside of a git checkout.
    """
    for name in tracked_files(project):
        path, copy = project / name, target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy, follow_symlinks=False)
        if not copy.is_symlink():
            copy.chmod(0o755 if os.access(path, os.X_OK) else 0o644)
    return target


def tracked_files(project: Path) -> Iterator[str]:
    """The names of the files and links that git tracks, relative to `project`. Raises `ReleaseError` outside
    of a git checkout.
    """
    for name in _git(project, "ls-files", "-z").split("\0"):
        if name and os.path.lexists(project / name):  # else it is deleted, and that is not committed yet
            yield name


def source_date_epoch(project: Path) -> int:
    """The time of all files in the artefacts, in seconds since 1970.

    SOURCE_DATE_EPOCH (https://reproducible-builds.org/specs/source-date-epoch/) if it is set, otherwise the
    time of the last commit.
    """
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is None:
        return int(_git(project, "log", "-1", "--format=%ct"))
    if not given.isdecimal():
        raise ReleaseError(f"SOURCE_DATE_EPOCH is {given!r}; set it to seconds since 1970, or unset it")
    return int(given)


def commit_of(project: Path) -> str:
    """The commit of the checkout, with `-dirty` behind it if tracked files have changed since."""
    return _git(project, "describe", "--always", "--dirty", "--abbrev=40", "--match", "no-tag").strip()


def _git(project: Path, *arguments: str) -> str:
    try:
        return subprocess.run(
            ["git", "-C", project, *arguments], check=True, capture_output=True, text=True
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        reason = error.stderr.strip() if isinstance(error, subprocess.CalledProcessError) else error
        raise ReleaseError(f"{project} must be a git checkout with a commit: {reason}") from None
