"""The dependencies of the package, with those that they need themselves, are few and known."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement

from tests.release.dependencies import DEPENDENCIES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "installing.md"


def needed_by(name: str) -> Iterator[str]:
    """The distributions that an install of `name` without extras brings."""
    for text in requires(name) or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement.name.lower().replace("_", "-")
            yield from needed_by(requirement.name)


def test_an_install_brings_the_documented_distributions_and_no_others() -> None:
    assert set(needed_by("barnabas")) == DEPENDENCIES
    page = PAGE.read_text()
    assert all(f"`{name}`" in page for name in DEPENDENCIES)
