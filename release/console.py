"""Builds the console in the browser for the artefacts, with the libraries of its lock file."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from release.errors import ReleaseError
from release.tools import run_quietly


class Library(NamedTuple):
    """A library from npm whose code is in the built console."""

    name: str
    version: str
    licence: str
    """Its identifier in SPDX's list."""


def build_console(source: Path) -> None:
    """Puts the built files beside the sources in `source`, where setuptools takes them from.

    The folder of the libraries is removed again, because it would make the source distribution large. Raises
    `ReleaseError` without Node, or if a tool fails.
    """
    if shutil.which("npm") is None:
        raise ReleaseError("a release has a console, and there is no npm: install Node 18 or later")
    folder = source / "console"
    run_quietly(["npm", "--prefix", folder, "ci"])
    run_quietly(["npm", "--prefix", folder, "run", "build"])
    shutil.rmtree(folder / "node_modules")


def console_libraries(source: Path) -> Sequence[Library]:
    """The libraries in the console, in the order of their names."""
    folder = source / "console"
    wanted = json.loads((folder / "package.json").read_text(encoding="utf-8"))["dependencies"]
    locked = json.loads((folder / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    packages = {name: locked[f"node_modules/{name}"] for name in sorted(wanted)}
    return [Library(name, one["version"], one["license"]) for name, one in packages.items()]
