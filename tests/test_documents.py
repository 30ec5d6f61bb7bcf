"""Every link in a document leads to an existing file and heading, the index names every page, and the modules
and tests that a page names exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.folders import FOLDERS

PROJECT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted([*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md"), *PROJECT.glob("docker/**/*.md")])
PAGES_ABOUT_THE_CODE = [
    PROJECT / "CONTRIBUTING.md",
    PROJECT / "docs" / "architecture.md",
    *sorted(PROJECT.glob("docs/decisions/*.md")),
]
_LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]+))?\)")
_TEST = re.compile(r"^ *(?:async )?def (test_\w+)\(", re.MULTILINE)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(PROJECT)))
def test_every_link_leads_somewhere(document: Path) -> None:
    lost = [
        f"{target}#{anchor}" if anchor else target
        for target, anchor in _LINK.findall(_text(document))
        if not _leads_somewhere(document.parent / target if target else document, anchor)
    ]
    assert lost == []


def test_the_index_names_every_page() -> None:
    index = PROJECT / "docs" / "README.md"
    named = {index.parent / target for target, _ in _LINK.findall(_text(index))}
    assert set(PROJECT.glob("docs/**/*.md")) - named == {index}


@pytest.mark.parametrize("document", PAGES_ABOUT_THE_CODE, ids=lambda path: path.name)
def test_every_module_that_a_page_about_the_code_names_exists(document: Path) -> None:
    modules = [f"/{path.relative_to(PROJECT)}" for path in _modules()]
    named = set(re.findall(r"`([\w/]+\.py)`", _text(document)))
    assert [name for name in sorted(named) if not any(one.endswith(f"/{name}") for one in modules)] == []


def test_every_test_that_the_checklist_of_kafkas_tests_names_exists() -> None:
    page = _text(PROJECT / "docs" / "kafka-test-checklist.md")
    named = set(re.findall(r"`(test_\w+\.py)::(\w+)`", page))
    modules = (PROJECT / "tests").rglob("test_*.py")
    tests = {(path.name, name) for path in modules for name in _TEST.findall(_text(path))}
    assert named
    assert sorted(named - tests) == []


def _text(document: Path) -> str:
    return document.read_text(encoding="utf-8")


def _leads_somewhere(target: Path, anchor: str) -> bool:
    return target.exists() and (not anchor or anchor in set(_anchors(target)))


def _anchors(document: Path) -> Iterator[str]:
    """Anchors of the headings, in GitHub's form."""
    for heading in re.findall(r"^#+ (.+)$", _text(document), re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _modules() -> Iterator[Path]:
    for folder in (*FOLDERS, "tests", "release", "benchmarks", "docs", "src/barnabas"):
        yield from (PROJECT / folder).glob("**/*.py")
