"""`make docs` makes a site of the list of pages, and fails on a link that leads nowhere."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]
PAGES = {
    "README.md": "# Pages\n\n## Start\n\n- [One](one.md): the first\n\n## Decisions\n\n"
    "[How to read them](decisions/README.md)\n\n1. [A choice](decisions/0001-a-choice.md)\n",
    "one.md": "# One\n\n## A part\n\nSee [a part](#a-part), [a choice](decisions/0001-a-choice.md#why).\n",
    "decisions/README.md": "# Decisions\n",
    "decisions/0001-a-choice.md": "# A choice\n\n## Why\n\nBecause of [one](../one.md).\n",
}
BROKEN = "\n[a](missing.md), [b](decisions/0001-a-choice.md#missing), [c](../missing.txt)\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A small folder of documentation with the project's configuration of Sphinx."""
    folder = tmp_path / "docs"
    (folder / "decisions").mkdir(parents=True)
    for name in ("conf.py", "style.css"):
        shutil.copy(PROJECT / "docs" / name, folder)
    for name, text in PAGES.items():
        (folder / name).write_text(text)
    return folder


def build(source: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Sphinx with the options of `make docs`."""
    found = re.search(r"-m sphinx (.*) docs \.cache/site$", (PROJECT / "Makefile").read_text(), re.MULTILINE)
    assert found is not None
    command = [sys.executable, "-m", "sphinx", *shlex.split(found[1]), str(source), str(site)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_sections_of_the_list_are_the_navigation(source: Path, tmp_path: Path) -> None:
    built = build(source, tmp_path / "site")
    assert (built.returncode, built.stderr) == (0, "")
    front = (tmp_path / "site" / "index.html").read_text()
    sidebar = front.partition('class="sidebar-tree"')[2].partition("</aside>")[0]
    assert re.findall(r'<span class="caption-text">(.*?)</span>', sidebar) == ["Start", "Decisions"]
    assert re.findall(r'href="([\w/-]+\.html)"', sidebar) == [
        "one.html",
        "decisions/README.html",
        "decisions/0001-a-choice.html",
    ]


def test_a_page_loads_nothing_from_elsewhere(source: Path, tmp_path: Path) -> None:
    build(source, tmp_path / "site")
    pages = [path.read_text() for path in (tmp_path / "site").rglob("*.html")]
    assert len(pages) > len(PAGES)
    loaded = [
        found for page in pages for found in re.findall(r"<(?:script|link|img)\b[^>]*https?:[^>]*>", page)
    ]
    assert loaded == []


def test_links_that_lead_nowhere_and_unlisted_pages_fail_the_build(source: Path, tmp_path: Path) -> None:
    with (source / "one.md").open("a") as page:
        page.write(BROKEN)
    (source / "unlisted.md").write_text("# Unlisted\n")
    built = build(source, tmp_path / "site")
    assert built.returncode == 1
    for complaint in (
        "cross-reference target not found: 'missing.md'",
        "local id not found in doc 'decisions/0001-a-choice': 'missing'",
        "cross-reference target not found: '../missing.txt'",
        "unlisted.md: WARNING: document isn't included in any toctree",
    ):
        assert complaint in built.stderr
