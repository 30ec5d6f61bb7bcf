"""The pages of docs that are made from the code, as a whole or in blocks.

A block of a page that people write lies between two comments:

    <!-- make generate: group-settings share.retry.* -->
    ...
    <!-- end of make generate -->

The first word is the name of the block's maker in `_BLOCKS`; the rest are its arguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.differential import documentation
from tests.reference import apis, errors, settings

DOCS: Final = Path(__file__).resolve().parents[2] / "docs"

WHOLE_PAGES: Final[Mapping[Path, Callable[[], str]]] = {
    DOCS / "differences.md": documentation.rendered,
    DOCS / "reference" / "apis.md": apis.rendered,
    DOCS / "reference" / "errors.md": errors.rendered,
    DOCS / "reference" / "settings.md": settings.rendered,
}
"""The function that makes each page."""

_BLOCKS: Final[Mapping[str, Callable[[str, Sequence[str]], str]]] = {
    "group-settings": settings.rendered_group_settings,
}
"""Functions of the page, relative to docs, and of the block's arguments."""

_BLOCK: Final = re.compile(
    r"(?P<first><!-- make generate: (?P<words>[^\n]+) -->\n).*?(?P<last><!-- end of make generate -->)",
    re.DOTALL,
)


def rendered_pages() -> dict[Path, str]:
    """The text that each page with a generated part must have."""
    pages = {path: rendered() for path, rendered in WHOLE_PAGES.items()}
    for path in sorted(DOCS.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        if path not in pages and _BLOCK.search(text):
            pages[path] = with_blocks(text, path.relative_to(DOCS).as_posix())
    return pages


def with_blocks(text: str, page: str) -> str:
    """The text of a page with new contents of its blocks; `KeyError` for a block of an unknown name."""

    def renewed(block: re.Match[str]) -> str:
        name, *arguments = block["words"].split()
        return f"{block['first']}\n{_BLOCKS[name](page, arguments)}\n{block['last']}"

    return _BLOCK.sub(renewed, text)
