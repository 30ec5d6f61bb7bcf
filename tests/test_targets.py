"""Each test belongs to one of make's targets that run pytest, and CONTRIBUTING.md names all targets."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

from tests.conftest import MARKERS
from tests.explore import EXPLORERS

PROJECT = Path(__file__).resolve().parents[1]
FOLDER_OF_MARKER = {
    "clients": "clients",
    "rare": "clients",
    "spark": "pipeline",
    "kafka": "pipeline",
    "matrix": "pipeline",
    "long": "pipeline",
    "release": "release",
    "images": "containers",
}
"""All targets except `test` collect one folder only."""
GATE = ["check", "test", "test COMPILED=1", "test-spark", "clients COMPILED=1"]
"""The targets of `.ci/run`. `make explore` has the random ones."""
GATE_TARGETS = {command.partition(" ")[0] for command in GATE}
BY_HAND = {"images"}
"""Building all images takes minutes, and needs a mirror of Debian."""

ENDLESS_OR_SHORT = {"help", "run", "clean"}
"""Targets whose duration the table of CONTRIBUTING.md leaves out."""

# `properties` runs tests of the others again, with fresh examples.
_TARGET = re.compile(
    r"^([a-z-]+)(?<!properties): setup .*\n(?:\t.*\n)*?\t.*pytest.*[ ,]-m '([^']+)'", re.MULTILINE
)
TARGETS = dict(_TARGET.findall((PROJECT / "Makefile").read_text(encoding="utf-8")))


def test_the_makefile_has_seven_targets_that_select_by_marker() -> None:
    assert set(TARGETS) == {"test", "test-spark", "matrix", "clients", "rare", "images", "dist"}


@pytest.mark.parametrize("given", list(product((False, True), repeat=len(FOLDER_OF_MARKER))))
def test_every_possible_test_is_in_one_target(given: tuple[bool, ...]) -> None:
    markers = dict(zip(FOLDER_OF_MARKER, given, strict=True))
    if len({FOLDER_OF_MARKER[name] for name, is_given in markers.items() if is_given}) > 1:
        return  # there is no such test: the markers belong to different folders
    selecting = [name for name, expression in TARGETS.items() if eval(expression, {}, markers)]
    assert len(selecting) == 1, f"{markers} is in {selecting}"


@pytest.mark.parametrize(("marker", "folder"), list(FOLDER_OF_MARKER.items()))
def test_a_marker_is_used_in_the_folder_of_its_target_only(marker: str, folder: str) -> None:
    assert marker in MARKERS
    used = re.compile(rf"pytest\.mark\.{marker}\b")
    elsewhere = [
        str(path.relative_to(PROJECT))
        for path in sorted((PROJECT / "tests").rglob("*.py"))
        if used.search(path.read_text(encoding="utf-8"))
        and path.relative_to(PROJECT / "tests").parts[0] not in (folder, "conftest.py", "test_targets.py")
    ]
    assert elsewhere == []


def test_contributing_has_the_time_of_each_target() -> None:
    lines = (PROJECT / "Makefile").read_text(encoding="utf-8").splitlines()
    (phony,) = (line.split()[1:] for line in lines if line.startswith(".PHONY:"))
    rows = re.findall(
        r"^\| (`make .*?) \|", (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    named = [name for row in rows for name in re.findall(r"`make ([a-z-]+)", row)]
    assert sorted(named) == sorted(set(phony) - ENDLESS_OR_SHORT)


def test_each_target_is_in_the_gate_or_explored_or_run_by_hand() -> None:
    run = (PROJECT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.findall(r"^make (.+)$", run, re.MULTILINE) == GATE
    assert TARGETS.keys() <= {*GATE_TARGETS, *EXPLORERS, *BY_HAND}
    assert not EXPLORERS.keys() & {*GATE_TARGETS, *BY_HAND}
