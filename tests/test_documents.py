"""Every link in a document leads to an existing file and heading, and the index names every page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted([*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md"), *PROJECT.glob("docker/**/*.md")])
_LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]+))?\)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(PROJECT)))
def test_every_link_leads_somewhere(document: Path) -> None:
    lost = [
        f"{target}#{anchor}" if anchor else target
        for target, anchor in _LINK.findall(document.read_text(encoding="utf-8"))
        if not _leads_somewhere(document.parent / target if target else document, anchor)
    ]
    assert lost == []


def test_the_index_names_every_page() -> None:
    index = PROJECT / "docs" / "README.md"
    named = {index.parent / target for target, _ in _LINK.findall(index.read_text(encoding="utf-8"))}
    assert set(PROJECT.glob("docs/**/*.md")) - named == {index}


def _leads_somewhere(target: Path, anchor: str) -> bool:
    return target.exists() and (not anchor or anchor in set(_anchors(target)))


def _anchors(document: Path) -> Iterator[str]:
    """Anchors of the headings, in GitHub's form."""
    for heading in re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
