"""Barnabas, in an environment with only its runtime dependencies, with its bytecode written to disk: this
working tree, or another one to compare it with.
"""

import os
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.clients.java_build import PROJECT

from benchmarks.brokers.process import LocalBroker, sibling


class Barnabas(LocalBroker):
    """`barnabas serve` of the project in `project`; `settings` are passed as --set.

    With `compiled` it runs what `make compiled` has built there.
    """

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        *,
        project: Path = PROJECT,
        compiled: bool = False,
    ) -> None:
        super().__init__("barnabas", directory)
        self.settings = settings or {}
        self._project = project
        self._compiled = compiled

    def command(self) -> Sequence[str]:
        arguments = [f"--set={name}={value}" for name, value in self.settings.items()]
        data = self.directory / "data"
        return [
            str(_command(self._project)),
            "serve",
            "--listen",
            self.address,
            "--data-dir",
            str(data),
            *arguments,
        ]

    def environment(self) -> Mapping[str, str]:
        unwanted = ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH")
        kept = {name: value for name, value in os.environ.items() if name not in unwanted}
        if not self._compiled:
            return kept
        folder = self._project / ".cache" / "compiled"
        if not (folder / "built").exists():
            raise RuntimeError("run `make compiled` first")
        return {**kept, "PYTHONPATH": str(folder)}

    def fresh(self) -> "Barnabas":
        return self.with_settings(self.settings)

    def with_settings(self, settings: Mapping[str, str]) -> "Barnabas":
        """A broker of the same project with its own empty data directory."""
        return Barnabas(sibling(self.directory), settings, project=self._project, compiled=self._compiled)


def _command(project: Path) -> Path:
    """The installed command of the project.

    The environment is created at the first use, and again when pyproject.toml changes.

    It has no test packages, because they slow down the start: kio imports hypothesis if that is installed.
    """
    environment = project / ".cache" / "benchmark-venv"
    command = environment / "bin" / "barnabas"
    project_changed = (project / "pyproject.toml").stat().st_mtime
    if not command.exists() or command.stat().st_mtime < project_changed:
        print(f"creating {environment}", file=sys.stderr)
        venv.create(environment, with_pip=True, clear=True)
        packages = f"{project}[http]"
        install = [str(environment / "bin" / "pip"), "install", "--quiet", "--editable", packages]
        subprocess.run(install, check=True)
    return command
