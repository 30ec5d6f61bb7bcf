"""The software bill of materials, in CycloneDX's format: all that `pip install barnabas` brings.

It lists the versions that were newest when the release was built. Extras are not in it.
"""

from __future__ import annotations

import sys
import venv
from pathlib import Path

from release.tools import run_quietly


def write_bill(wheel: Path, pyproject: Path, scratch: Path, out: Path) -> Path:
    """Installs `wheel` into a new environment in `scratch`, and writes the bill of that environment to `out`.

    Raises `ReleaseError` if a dependency cannot be installed, or if the bill would violate its schema.
    """
    environment = scratch / "environment"
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    _run_module("pip", "--python", python, "install", "--quiet", "--no-compile", wheel)
    name, version = wheel.name.split("-")[:2]
    bill = out / f"{name}-{version}.cdx.json"
    form = ("--output-format", "JSON", "--output-reproducible", "--validate", "--mc-type", "application")
    _run_module("cyclonedx_py", "environment", *form, "--pyproject", pyproject, "--output-file", bill, python)
    return bill


def _run_module(*arguments: str | Path) -> None:
    run_quietly([sys.executable, "-m", *arguments])
