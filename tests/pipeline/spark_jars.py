"""Jars that the tests' Spark session has beside its own: fetched by Maven, compared with pinned checksums.

They stay in .cache/spark-jars. `jars/pom.xml` lists them; a jar that is added there needs a line in
`jars/SHA256SUMS`. Spark's own Kafka connector is among them, in a set that works without any guarantee.
"""

from __future__ import annotations

import fcntl
import hashlib
from pathlib import Path
from typing import Final

from tests.clients.java_build import PROJECT, fetch_jars

CACHE: Final = PROJECT / ".cache" / "spark-jars"

_PINNED: Final = Path(__file__).resolve().parent / "jars"


def spark_class_path() -> str:
    """The value of `spark.driver.extraClassPath`, after the jars are downloaded and checked."""
    return str(_directory() / "*")


def spark_jars() -> str:
    """The same jars for `spark.jars` or `--jars`, which brings them to every executor."""
    return ",".join(str(jar) for jar in sorted(_directory().glob("*.jar")))


def _directory() -> Path:
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        jars = fetch_jars(_PINNED / "pom.xml", CACHE / "lib")
        _check(jars)
    return jars


def _check(jars: Path) -> None:
    """The jars are those that were pinned, no others, no more, no less."""
    lines = (_PINNED / "SHA256SUMS").read_text().splitlines()
    pinned = {name: digest for digest, name in (line.split() for line in lines)}
    found = {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in jars.glob("*.jar")}
    differing = sorted(name for name in pinned.keys() | found.keys() if pinned.get(name) != found.get(name))
    if differing:
        raise AssertionError(f"different from jars/SHA256SUMS: {', '.join(differing)} in {jars}")
