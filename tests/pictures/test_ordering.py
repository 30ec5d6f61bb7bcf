"""The pictures in the documentation are those that the code draws."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pictures.ordering import pictures


@pytest.mark.parametrize("path", sorted(pictures()), ids=lambda path: path.name)
def test_a_picture_is_up_to_date(path: Path) -> None:
    remedy = "run python -m tests.pictures.ordering, and look at the difference"
    assert path.read_text(encoding="utf-8") == pictures()[path], remedy
