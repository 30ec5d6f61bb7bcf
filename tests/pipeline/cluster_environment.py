"""The files for the pipeline on a cluster: the wheel, and a Python for the nodes with its dependencies.

Made in .cache/cluster when their sources have changed: a virtual environment that has everything except
Barnabas, and the wheel. An archive has the packages of both.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import requires, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from release.source_tree import copy_tracked_files, tracked_files
from tests.clients.java_build import PROJECT

CACHE: Final = PROJECT / ".cache" / "cluster"


def built_wheel() -> Path:
    """The wheel of the files that git tracks, with their present contents."""
    with _locked():
        newest = max(path.stat().st_mtime for path in _sources())
        wheels = sorted((CACHE / "wheel").glob("*.whl"))
        if wheels and wheels[-1].stat().st_mtime >= newest:
            return wheels[-1]
        shutil.rmtree(CACHE / "wheel", ignore_errors=True)
        with TemporaryDirectory() as copy:
            # Setuptools leaves its traces where it builds.
            sources = copy_tracked_files(PROJECT, Path(copy) / "project")
            _pip(sys.executable, ["wheel", "--no-deps", "--wheel-dir", str(CACHE / "wheel"), str(sources)])
    return next((CACHE / "wheel").glob("*.whl"))


def node_environment() -> Path:
    """A virtual environment with the dependencies of Barnabas and its extra, but without Barnabas."""
    environment, stamp = CACHE / "node", CACHE / "node.stamp"
    with _locked():
        if not stamp.exists() or stamp.stat().st_mtime < (PROJECT / "pyproject.toml").stat().st_mtime:
            venv.create(environment, with_pip=True, clear=True)
            _pip(str(environment / "bin" / "python"), ["install", *_dependencies()])
            stamp.touch()
    return environment


def packed_packages(directory: Path) -> Path:
    """An archive of the packages in that environment and those of the wheel, as `--archives` takes it.

    Only packages: files that Spark unpacks lose their links and their permission to be executed.
    """
    library = f"lib/python{sys.version_info.major}.{sys.version_info.minor}"
    packages, archive = node_environment() / library / "site-packages", directory / "packages.tar"
    with tarfile.open(archive, "w") as packed, zipfile.ZipFile(built_wheel()) as wheel:
        # Hadoop refuses to unpack a name that begins with a dot and a slash.
        for child in sorted(packages.iterdir()):
            packed.add(child, arcname=child.name)
        for member in wheel.infolist():
            entry = tarfile.TarInfo(member.filename)
            entry.size = member.file_size
            with wheel.open(member) as content:
                packed.addfile(entry, content)
    return archive


@contextmanager
def _locked() -> Generator[None]:
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _sources() -> Iterator[Path]:
    """The files that a wheel is made of; those of a package lie in the folder behind its link."""
    packages = {one.resolve().name for one in (PROJECT / "src" / "barnabas").iterdir() if one.is_symlink()}
    for name in tracked_files(PROJECT):
        folder, _, rest = name.partition("/")
        if not rest or folder in {"src", *packages}:
            yield PROJECT / name


def _dependencies() -> Sequence[str]:
    """The packages that Barnabas needs at run time, and PyArrow, each in the installed version."""
    names = [one.split(">=")[0] for one in requires("barnabas") or () if "extra" not in one]
    return [f"{name}=={version(name)}" for name in (*names, "pyarrow")]


def _pip(python: str, arguments: Sequence[str]) -> None:
    command = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"pip {arguments[0]} failed:\n{done.stdout}{done.stderr}"
