"""Builds the images of docker/ without a container engine: buildah in a chroot, on base images made by
debootstrap.

Docker's base images are not downloaded. Each has a stand-in on Debian, in `BASES`. buildah's store and the
base images stay in `.cache/images`; a changed recipe makes a new base image. Needs root on Debian or Ubuntu.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

PROJECT: Final = Path(__file__).resolve().parents[2]
STORE: Final = PROJECT / ".cache" / "images"
PROGRAMS: Final = ("buildah", "debootstrap")
"""Also the names of their packages in Debian."""
SUITE: Final = "bookworm"
MIRROR: Final = "http://deb.debian.org/debian"

_IN_CHROOT: Final = ("--isolation", "chroot", "--network", "host")
_ARGUMENT: Final = re.compile(r"^ARG (\w+)=(\S+)$", re.MULTILINE)
_PYTHON_PACKAGES: Final = "python3,python3-venv,python3-pip,python-is-python3,ca-certificates"
_HOST_FILES: Final = (
    ("/etc/ssl/certs", "/etc/ssl/certs"),
    ("/etc/pip.conf", "/etc/pip.conf"),
    ("~/.config/pip/pip.conf", "/root/.config/pip/pip.conf"),
    ("/etc/npmrc", "/etc/npmrc"),
    ("~/.npmrc", "/root/.npmrc"),
    ("~/.m2/settings.xml", "/root/.m2/settings.xml"),
)
"""Builds see these of the host, so that pip, npm and Maven download as they do there."""


class Base(NamedTuple):
    """A stand-in for a base image: Python on Debian, with packages of Debian."""

    packages: str = ""
    """Separated by blanks."""
    config: tuple[str, ...] = ()
    """Options of `buildah config`."""


BASES: Final[Mapping[str, Base]] = {
    "python:3.13-slim": Base(),
    "python:3.13": Base("gcc libc6-dev python3-dev"),
    "node:22-slim": Base("nodejs npm"),
    "maven:3.9-eclipse-temurin-17": Base("maven openjdk-17-jdk-headless"),
    "eclipse-temurin:17-jre": Base("openjdk-17-jre-headless"),
    "prom/prometheus:v3.5.0": Base("prometheus", ("--entrypoint", '["prometheus"]', "--cmd", "")),
}
"""By the name of the image that it replaces."""


def require_programs() -> None:
    """Install the programs that are missing, as .ci/run does. RuntimeError if that is not possible."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if os.getuid() != 0:
        raise RuntimeError("make images needs root, because buildah makes chroots.")
    if missing and shutil.which("apt-get") is None:
        raise RuntimeError(f"make images needs {', '.join(missing)}.")
    if missing:
        _run("apt-get", "update", "-qq")
        _run("apt-get", "install", "-qq", "--yes", "--no-install-recommends", *missing)


def buildah(*arguments: str | Path) -> str:
    """Run buildah on the store; its output. RuntimeError with everything that it printed if it fails."""
    return _run(*command(*arguments))


def command(*arguments: str | Path) -> list[str]:
    """The command line of buildah on the store."""
    store = ["--root", str(STORE / "store"), "--runroot", str(STORE / "run")]
    return ["buildah", *store, *map(str, arguments)]


def run_command(container: str, options: Iterable[str], program: Sequence[str]) -> list[str]:
    """The command line that runs a program in a working container, on the host's network."""
    return command("run", *_IN_CHROOT, *options, container, "--", *program)


def build_image(tag: str, context: Path, dockerfile: Path) -> None:
    """Build a Dockerfile on the stand-ins of its base images, which are its arguments."""
    arguments = [
        option
        for name, image in _ARGUMENT.findall(dockerfile.read_text(encoding="utf-8"))
        for option in ("--build-arg", f"{name}={stand_in(image)}")
    ]
    buildah("bud", *_IN_CHROOT, "--format", "docker", "--layers", *_host_volumes(), *arguments,
            "--tag", tag, "--file", dockerfile, context)  # fmt: skip


def stand_in(image: str) -> str:
    """The local name of the stand-in, which is built if it does not exist."""
    base = BASES[image]
    name = image.partition(":")[0].rpartition("/")[2]
    tag = f"localhost/base-{name}:{_digest(SUITE, _PYTHON_PACKAGES, base.packages, *base.config)}"
    if not has_image(tag):
        _make_base(tag, base)
    return tag


def has_image(tag: str) -> bool:
    return bool(buildah("images", "--quiet", "--filter", f"reference={tag}"))


def image_config(image: str) -> dict[str, Any]:
    """The part `config` of an image in Docker's format: Entrypoint, Cmd, User, Healthcheck, ..."""
    return dict(json.loads(buildah("inspect", "--type", "image", image))["Docker"]["config"])


def image_bytes(image: str) -> Sequence[int]:
    """The size of each layer, the lowest first."""
    manifest = json.loads(json.loads(buildah("inspect", "--type", "image", image))["Manifest"])
    return [layer["size"] for layer in manifest["layers"]]


def _digest(*parts: str) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()[:12]


def _make_base(tag: str, base: Base) -> None:
    container = buildah("from", _debian() if base.packages else "scratch")
    try:
        if base.packages:
            install = (
                "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes "
                f"--no-install-recommends {base.packages} && rm -rf /var/lib/apt/lists/*"
            )
            buildah("run", *_IN_CHROOT, container, "--", "sh", "-c", install)
        else:
            buildah("add", "--quiet", container, _bootstrapped(), "/")
        if base.config:
            buildah("config", *base.config, container)
        buildah("commit", "--quiet", "--format", "docker", container, tag)
    finally:
        buildah("rm", container)


def _debian() -> str:
    return stand_in("python:3.13-slim")


def _bootstrapped() -> Path:
    """A directory with Debian and Python, in which pip may install beside Debian's packages, as in Docker's
    image of Python.
    """
    root = STORE / f"debian-{_digest(SUITE, _PYTHON_PACKAGES)}"
    finished = root.with_suffix(".finished")
    if not finished.exists():
        shutil.rmtree(root, ignore_errors=True)
        STORE.mkdir(parents=True, exist_ok=True)
        _run("debootstrap", "--variant=minbase", f"--include={_PYTHON_PACKAGES}", SUITE, root, MIRROR)
        for marker in root.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
            marker.unlink()
        for archive in root.glob("var/cache/apt/archives/*.deb"):
            archive.unlink()
        finished.touch()
    return root


def _run(*command: str | Path) -> str:
    """The output of a program. RuntimeError with the end of everything that it printed if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} failed:\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout.strip()


def _host_volumes() -> Iterator[str]:
    for of_host, of_build in _HOST_FILES:
        path = Path(of_host).expanduser()
        if path.exists():
            yield from ("--volume", f"{path}:{of_build}:ro")
