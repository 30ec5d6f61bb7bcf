"""Go programs that the benchmarks build at the first use and keep in .cache/."""

import shutil
import subprocess
from pathlib import Path

from tests.clients.java_build import PROJECT, is_newer

_MODULES = Path(__file__).resolve().parent


def go_is_installed() -> bool:
    """Whether Go programs can be built here."""
    return shutil.which("go") is not None


def go_program(name: str) -> Path:
    """The program of the module benchmarks/NAME, built again when its source or its versions change."""
    module = _MODULES / name
    binary = PROJECT / ".cache" / name
    if not is_newer(binary, sorted(module.iterdir())):
        binary.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["go", "build", "-o", str(binary), "."], cwd=module, check=True)
    return binary
