"""Barnabas, in an environment with only its runtime dependencies, with its bytecode written to disk."""

import os
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.clients.java_build import PROJECT

from benchmarks.brokers.process import LocalBroker, sibling

_ENVIRONMENT = PROJECT / ".cache" / "benchmark-venv"


class Barnabas(LocalBroker):
    """`barnabas serve`; `settings` are passed as --set."""

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        super().__init__("barnabas", directory)
        self.settings = settings or {}

    def command(self) -> Sequence[str]:
        arguments = [f"--set={name}={value}" for name, value in self.settings.items()]
        data = self.directory / "data"
        return [str(_command()), "serve", "--listen", self.address, "--data-dir", str(data), *arguments]

    def environment(self) -> Mapping[str, str]:
        unwanted = ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH")
        return {name: value for name, value in os.environ.items() if name not in unwanted}

    def fresh(self) -> "Barnabas":
        return Barnabas(sibling(self.directory), self.settings)


def _command() -> Path:
    """The installed command.

    The environment is created at the first use, and again when pyproject.toml changes.

    It has no test packages, because they slow down the start: kio imports hypothesis if that is installed.
    """
    command = _ENVIRONMENT / "bin" / "barnabas"
    project_changed = (PROJECT / "pyproject.toml").stat().st_mtime
    if not command.exists() or command.stat().st_mtime < project_changed:
        print(f"creating {_ENVIRONMENT.relative_to(PROJECT)}", file=sys.stderr)
        venv.create(_ENVIRONMENT, with_pip=True, clear=True)
        install = [str(_ENVIRONMENT / "bin" / "pip"), "install", "--quiet", "--editable", str(PROJECT)]
        subprocess.run(install, check=True)
    return command
