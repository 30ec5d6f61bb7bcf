"""The help texts of metrics: the first sentence of each meaning in docs/metrics.md, without its marks.

The package has that page as `metrics.md`, so that a metric is described in one place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).with_name("metrics.md")

_NAME: Final = re.compile(r"`((?:kafka|barnabas)_[a-z_]+)`")
_REFERENCE: Final = re.compile(r" \(\[[^\]]*\]\([^)]*\)\)")
"""A link in parentheses, to another page."""
_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_FOOTNOTE: Final = re.compile(r" \(\d\)$")
_SENTENCE_END: Final = re.compile(r"\. (?=[A-Z])")


@cache
def help_texts() -> Mapping[str, str]:
    """The help text by the Prometheus name of each metric."""
    return read_help_texts(PAGE.read_text(encoding="utf-8"))


def read_help_texts(page: str) -> Mapping[str, str]:
    """Those in the tables of a page: rows with the name in a cell of its own, and the meaning in the last."""
    texts: dict[str, str] = {}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        names = [found[1] for cell in cells[:2] if (found := _NAME.fullmatch(cell)) is not None]
        if line.startswith("|") and names:
            texts[names[0]] = _first_sentence(cells[-1])
    return texts


def _first_sentence(meaning: str) -> str:
    plain = _LINK.sub(r"\1", _REFERENCE.sub("", meaning)).replace("`", "")
    sentence = _FOOTNOTE.sub("", _SENTENCE_END.split(plain, maxsplit=1)[0]).rstrip(".")
    return f"{sentence[0].upper()}{sentence[1:]}."
