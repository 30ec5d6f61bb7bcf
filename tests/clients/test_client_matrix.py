"""Every ordinary client works: the programs of `matrix`, each against the broker. `make clients` runs all
their parts, and the older releases of Kafka's client for Java.
"""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.clients.cluster import unique
from tests.clients.java_build import PROJECT
from tests.clients.matrix.programs import EXPECTED, PROGRAMS

OLDER_RELEASES = {"java-3.9", "java-4.1", "java-4.3"}
EVERYTHING = [(name, part) for name, program in PROGRAMS.items() for part in program.parts]


def run_part(bootstrap: str, name: str, part: str) -> None:
    command = [*PROGRAMS[name].prepare(), bootstrap, unique(name), part]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout) == {"part": part, **EXPECTED[part]}, done.stderr


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.clients if name in OLDER_RELEASES else ()) for name in PROGRAMS],
)
def test_each_client_creates_topics_produces_reads_and_commits(bootstrap: str, name: str) -> None:
    run_part(bootstrap, name, "basic")


@pytest.mark.clients
@pytest.mark.parametrize(("name", "part"), [one for one in EVERYTHING if one[1] != "basic"])
def test_each_client_passes_all_its_parts(bootstrap: str, name: str, part: str) -> None:
    run_part(bootstrap, name, part)
