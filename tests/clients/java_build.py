"""Kafka's Java clients, tools and broker, fetched by Maven, and the probe compiled against them; kept in
.cache/java.

The first use downloads some 60 MB; later ones only compare time stamps. Several processes may ask at once.
"""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
JAVA_PROJECT = Path(__file__).resolve().parent / "java"
CACHE = PROJECT / ".cache" / "java"

REFERENCE_VERSION = "4.4.0"
"""The version of Apache Kafka's broker that Barnabas is compared with."""

_INSTALL_HINTS = {
    "java": "apt-get install --yes openjdk-17-jdk-headless",
    "javac": "apt-get install --yes openjdk-17-jdk-headless",
    "mvn": "apt-get install --yes maven",
    "node": "apt-get install --yes nodejs",
    "npm": "apt-get install --yes npm",
}


class ToolMissingError(Exception):
    """A program that the tests need is not installed; the message is the command that installs it."""


def require(program: str) -> str:
    """Path of a program, or ToolMissingError with the command that installs it."""
    path = shutil.which(program)
    if path is None:
        raise ToolMissingError(
            f"{program} is needed and not installed; install it with: {_INSTALL_HINTS[program]}"
        )
    return path


def java_classpath() -> str:
    """Class path of Kafka's clients and tools and of the probe, rebuilt when out of date."""
    with _locked():
        jars = fetch_jars(JAVA_PROJECT / "pom.xml", CACHE / "lib")
        classes = _compile_probe(jars)
    return os.pathsep.join([str(classes), str(jars / "*")])


def broker_classpath(version: str = REFERENCE_VERSION) -> str:
    """Class path of Kafka's broker in a version, fetched if it is missing."""
    with _locked():
        jars = fetch_jars(
            JAVA_PROJECT / "broker" / "pom.xml", CACHE / f"broker-{version}", f"-Dkafka.version={version}"
        )
    return str(jars / "*")


@contextmanager
def _locked() -> Generator[None]:
    """No other process works in the cache meanwhile."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def fetch_jars(pom: Path, jars: Path, *options: str) -> Path:
    """The directory `jars` with the dependencies of a pom, fetched again if the pom has changed; the caller
    holds a lock.

    `options` are Maven's.
    """
    stamp = jars.with_name(f"{jars.name}.stamp")
    if not is_newer(stamp, [pom]):
        shutil.rmtree(jars, ignore_errors=True)
        run_quietly(
            [
                *(require("mvn"), "--quiet", "--batch-mode", f"--file={pom}"),
                *(f"-DoutputDirectory={jars}", *options, "dependency:copy-dependencies"),
            ]
        )
        stamp.touch()
    return jars


def _compile_probe(jars: Path) -> Path:
    sources = sorted((JAVA_PROJECT / "src").rglob("*.java"))
    classes = CACHE / "classes"
    stamp = CACHE / "classes.stamp"
    if not is_newer(stamp, [*sources, CACHE / "lib.stamp"]):
        shutil.rmtree(classes, ignore_errors=True)
        run_quietly([require("javac"), "-d", str(classes), "-cp", str(jars / "*"), *map(str, sources)])
        stamp.touch()
    return classes


def is_newer(stamp: Path, inputs: Iterable[Path]) -> bool:
    """Whether `stamp` exists, and none of `inputs` is younger."""
    return stamp.exists() and all(stamp.stat().st_mtime >= each.stat().st_mtime for each in inputs)


def run_quietly(command: Sequence[str | Path], directory: Path | None = None) -> None:
    """Run a program, in a directory; RuntimeError with all that it printed if it fails."""
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed:\n{done.stdout}{done.stderr}")
