"""The artefacts that `make dist` has built."""

from __future__ import annotations

from pathlib import Path

import pytest

from release.artefacts import Artefacts

DIST = Path(__file__).resolve().parents[2] / "dist"


@pytest.fixture(scope="session")
def artefacts() -> Artefacts:
    """Those in `dist`; AssertionError without them."""
    return Artefacts(_one("*.tar.gz"), _one("*-cp3*.whl"), _one("*-py3-none-any.whl"))


def _one(pattern: str) -> Path:
    found = list(DIST.glob(pattern))
    assert len(found) == 1, f"dist/{pattern} is {found}, not one file; run `make dist`"
    return found[0]
