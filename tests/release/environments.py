"""Environments with an installed artefact, and brokers that are started out of them."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.clients.broker_process import TEST_SETTINGS, BrokerProcess
from tests.clients.cluster import Cluster

_ROUND_TRIP = Path(__file__).with_name("round_trip.py")
_INHERITED = ("PATH", "HOME", "TMPDIR")
_OF_INSTALLERS = (
    "PIP_",
    "UV_",
    "NPM_CONFIG_",
    "npm_config_",
    "NODE_EXTRA_CA_CERTS",
    "SSL_",
    "REQUESTS_",
    "HTTP_",
    "HTTPS_",
    "NO_PROXY",
)


def installed_pythons() -> list[Path]:
    """An interpreter of each supported version that this machine has, in the search path or in pyenv."""
    found: list[Path] = []
    for minor in range(11, 15):
        name = f"python3.{minor}"
        candidates = [shutil.which(name), *Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/{name}")]
        found += [Path(path) for path in candidates if path and _runs(path)][:1]
    return found


def _runs(python: str | Path) -> bool:
    """Whether it is more than a shim of pyenv for a version that is not selected."""
    return (
        subprocess.run([python, "-c", "import ensurepip"], capture_output=True, check=False).returncode == 0
    )


def clean_environment(**more: str) -> dict[str, str]:
    """Variables for a program that must not see this checkout: only those of the installers."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _INHERITED or name.startswith(_OF_INSTALLERS)
    }
    return {**kept, **more}


def run(*command: str | Path, **variables: str) -> str:
    """Its standard output; AssertionError with all output if it fails."""
    finished = subprocess.run(
        command, env=clean_environment(**variables), capture_output=True, text=True, check=False, cwd="/"
    )
    assert finished.returncode == 0, f"{command} failed:\n{finished.stdout}{finished.stderr}"
    return finished.stdout


class Environment(NamedTuple):
    """A virtual environment of its own, without anything else."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def barnabas(self) -> Path:
        return self.folder / "bin" / "barnabas"

    def distributions(self) -> set[str]:
        """The installed distributions, in the form of PyPI's addresses."""
        names = "from importlib.metadata import distributions as d; print(*(one.name for one in d()))"
        return {name.lower().replace("_", "-") for name in run(self.python, "-c", names).split()}


def install(
    artefact: Path,
    folder: Path,
    python: str | Path = sys.executable,
    *,
    extra: str | None = None,
    path: str | None = None,
) -> Environment:
    """`pip install ARTEFACT` in a new environment of that Python; pip itself stays outside.

    `extra` is installed, too. `path` replaces the search path for programs.
    """
    run(python, "-m", "venv", "--without-pip", folder)
    environment = Environment(folder)
    # Wheels that pip has built from an earlier source distribution of the same version must not be used.
    wanted = artefact if extra is None else f"{artefact}[{extra}]"
    command = ("-m", "pip", "--python", environment.python, "install", "--quiet", "--no-cache-dir", wanted)
    run(sys.executable, *command, **({} if path is None else {"PATH": path}))
    return environment


def round_trip(python: Path, broker: BrokerProcess) -> dict[str, str]:
    """Produces records and reads them in a share group, with the asyncio client of `python`.

    Returns the facts that the program prints, such as whether its native modules are in use.
    """
    cluster = Cluster(broker.address)
    output = run(python, "-P", _ROUND_TRIP, broker.address, cluster.topic(), cluster.group())
    return dict(line.split(" = ", 1) for line in output.splitlines())


@contextmanager
def serving(
    command: Path, data_directory: Path, settings: Mapping[str, str] = TEST_SETTINGS
) -> Generator[BrokerProcess]:
    """A broker by `command serve`, which ends on SIGTERM with exit code 0."""
    broker = BrokerProcess(command, data_directory, settings)
    broker.start()
    try:
        yield broker
    finally:
        code = broker.stop()
    assert code == 0


def script(path: Path, *command: str | Path) -> Path:
    """A shell script that runs `command` with its own arguments added."""
    path.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, command))} "$@"\n')
    path.chmod(0o755)
    return path
