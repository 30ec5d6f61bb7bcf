"""Builds the console in the browser for the artefacts, with the libraries of its lock file."""

from __future__ import annotations

import shutil
from pathlib import Path

from release.errors import ReleaseError
from release.tools import run_quietly


def build_console(source: Path) -> None:
    """Puts the built files beside the sources in `source`, where setuptools takes them from.

    The folder of the libraries is removed again, because it would make the source distribution large. Raises
    `ReleaseError` without Node, or if a tool fails.
    """
    if shutil.which("npm") is None:
        raise ReleaseError("a release has a console, and there is no npm: install Node 20 or later")
    folder = source / "console"
    run_quietly(["npm", "--prefix", folder, "ci", "--no-audit", "--no-fund"])
    run_quietly(["npm", "--prefix", folder, "run", "build"])
    shutil.rmtree(folder / "node_modules")
