"""The software bill of materials, in CycloneDX's format: all that `pip install barnabas` brings.

It lists the versions that were newest when the release was built, and the libraries of the console, which are
in the wheel. Extras are not in it.
"""

from __future__ import annotations

import json
import sys
import venv
from collections.abc import Iterable
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from release.console import Library
from release.errors import ReleaseError
from release.tools import run_quietly


def write_bill(wheel: Path, libraries: Iterable[Library], pyproject: Path, scratch: Path, out: Path) -> Path:
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
    _add_libraries(bill, libraries)
    return bill


def _add_libraries(bill: Path, libraries: Iterable[Library]) -> None:
    content = json.loads(bill.read_text(encoding="utf-8"))
    for name, version, licence in libraries:
        component = {
            "bom-ref": f"{name}@{version}",
            "licenses": [{"license": {"acknowledgement": "declared", "id": licence}}],
            "name": name,
            "purl": f"pkg:npm/{name}@{version}",
            "type": "library",
            "version": version,
        }
        content["components"].append(component)
    text = json.dumps(content, indent=2)
    error = JsonStrictValidator(SchemaVersion.from_version(content["specVersion"])).validate_str(text)
    if error is not None:
        raise ReleaseError(f"the bill of materials violates its schema: {error}")
    bill.write_text(text, encoding="utf-8")


def _run_module(*arguments: str | Path) -> None:
    run_quietly([sys.executable, "-m", *arguments])
