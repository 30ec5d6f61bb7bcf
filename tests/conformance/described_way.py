"""The ways through the folders that two pages describe, and the way that code really takes."""

from __future__ import annotations

import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE = f"{PROJECT / 'src' / 'barnabas'}/"


class Step(NamedTuple):
    """A function on the way, by its file in the package."""

    file: str
    function: str

    @property
    def folder(self) -> str:
        return self.file.rpartition("/")[0]


CONTRIBUTING = PROJECT / "CONTRIBUTING.md"
ARCHITECTURE = PROJECT / "docs" / "architecture.md"


def described_steps(page: Path, section: str) -> list[Step]:
    """The rows of the table in a section of a page."""
    text = page.read_text().partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return [
        Step(*found) for found in re.findall(r"^\|[^|]*\| `([\w/]+\.py)` \| `(\w+)` \|$", text, re.MULTILINE)
    ]


class Way:
    """The described steps that a piece of code takes, each with the described step that called it."""

    def __init__(self, described: list[Step]) -> None:
        self.steps: list[Step] = []
        self.callers: list[Step | None] = []
        self._described = set(described)

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        step = step_of(frame)
        if event == "call" and step in self._described and step not in self.steps:
            self.steps.append(step)
            self.callers.append(self._caller_of(frame))

    def _caller_of(self, frame: FrameType) -> Step | None:
        caller = frame.f_back
        while caller is not None and step_of(caller) not in self._described:
            caller = caller.f_back
        return None if caller is None else step_of(caller)

    @property
    def crossings(self) -> int:
        """Calls from one folder into another."""
        return sum(
            caller is not None and caller.folder != step.folder
            for step, caller in zip(self.steps, self.callers, strict=True)
        )


def step_of(frame: FrameType) -> Step:
    return Step(frame.f_code.co_filename.removeprefix(PACKAGE), frame.f_code.co_name)


@contextmanager
def watched(described: list[Step]) -> Generator[Way]:
    way = Way(described)
    sys.setprofile(way)
    try:
        yield way
    finally:
        sys.setprofile(None)
