"""Two builds of the same sources give the same bytes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from release.artefacts import Artefacts
from tests.release.environments import clean_environment

pytestmark = pytest.mark.release

PROJECT = Path(__file__).resolve().parents[2]


def test_a_second_build_in_other_surroundings_gives_the_same_bytes(
    artefacts: Artefacts, tmp_path: Path
) -> None:
    """Another folder for intermediate files, another umask, time zone and language."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    surroundings = clean_environment(TMPDIR=str(scratch), TZ="Pacific/Auckland", LC_ALL="C")
    command: list[str | Path] = [sys.executable, "-m", "release", "--out", tmp_path / "again"]
    subprocess.run(command, check=True, cwd=PROJECT, env=surroundings, umask=0o077)
    first = (artefacts.sdist.parent / "SHA256SUMS").read_text()
    assert (tmp_path / "again" / "SHA256SUMS").read_text() == first
    assert len(first.splitlines()) == 5


def test_the_checksums_are_those_of_the_files(artefacts: Artefacts) -> None:
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], check=True, cwd=artefacts.sdist.parent)
