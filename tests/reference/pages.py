"""The generated pages of docs/reference; `python -m tests.reference` writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.reference import apis, errors, settings

FOLDER: Final = Path(__file__).parents[2] / "docs" / "reference"

PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "apis.md": apis.rendered,
    "errors.md": errors.rendered,
    "settings.md": settings.rendered,
}
"""The function that makes each page, by the page's file name."""
