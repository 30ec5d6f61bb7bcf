"""Fixtures of the console's tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def console_pictures(pytestconfig: pytest.Config) -> Path | None:
    """The folder for pictures of all pages; None if none are wanted."""
    given: str | None = pytestconfig.getoption("--console-pictures")
    if given is None:
        return None
    folder = Path(given)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
