"""Runs the tools of a release, whose thousands of lines matter only if they fail."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from release.errors import ReleaseError


def run_quietly(
    command: Sequence[str | Path],
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    umask: int = -1,
) -> None:
    """Runs `command` in this folder, with these variables and this umask (None, -1: those of this process).

    Raises `ReleaseError` if it fails; then its output is on standard error.
    """
    finished = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        umask=umask,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if finished.returncode:
        print(finished.stdout, file=sys.stderr)
        words = " ".join(map(str, command))
        raise ReleaseError(f"`{words}` failed with exit code {finished.returncode}; its output is above")
