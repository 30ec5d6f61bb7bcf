"""Every ordinary client works: the programs of `matrix`, each part against the broker, in each release of
Kafka's client for Java.
"""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.clients.cluster import unique
from tests.clients.java_build import PROJECT
from tests.clients.matrix.programs import EXPECTED, PROGRAMS

EVERYTHING = [(name, part) for name, program in PROGRAMS.items() for part in program.parts]


@pytest.mark.clients
@pytest.mark.parametrize(("name", "part"), EVERYTHING)
def test_each_client_passes_all_its_parts(bootstrap: str, name: str, part: str) -> None:
    command = [*PROGRAMS[name].prepare(), bootstrap, unique(name), part]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout) == {"part": part, **EXPECTED[part]}, done.stderr
