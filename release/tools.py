"""Runs the tools of a release, whose thousands of lines matter only if they fail."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from release.errors import ReleaseError


def run_quietly(
    command: Sequence[str | Path], *, environment: Mapping[str, str] | None = None, umask: int = -1
) -> None:
    """Runs `command` with these variables (None: those of this process) and umask (-1: that of this process).

    Raises `ReleaseError` if it fails; then its output is on standard error.
    """
    finished = subprocess.run(
        command,
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
