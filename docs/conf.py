"""Sphinx builds the pages of this folder as a site: `make docs`.

`README.md` is the only list of pages. Each of its sections becomes a part of the site's navigation, so a page
is in the site as soon as it is in that list. The pages are plain Markdown that GitHub shows in the same way.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from sphinx.application import Sphinx

project = "Barnabas"
author = "The authors of Barnabas"
extensions = ["myst_parser"]
root_doc = "README"
html_theme = "furo"
html_title = "Barnabas"
html_static_path = ["style.css"]
html_css_files = ["style.css"]
html_copy_source = False
html_show_sphinx = False
myst_heading_anchors = 6  # as on GitHub, every heading is the target of links

_SECTION = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_PAGE = re.compile(r"\]\(([\w/.-]+)\.md\)")
_DECISIONS = "decisions/README"


def setup(app: Sphinx) -> None:
    app.connect("source-read", _add_navigation)
    app.connect("build-finished", _copy_front_page)


def _add_navigation(_app: Sphinx, name: str, contents: list[str]) -> None:
    """Adds hidden tables of contents: to the list of pages one for each section, to the decisions one for all
    of them, so that they do not fill the navigation of every page.
    """
    if name == root_doc:
        contents[0] += "".join(_section_contents(*section) for section in _SECTION.findall(contents[0]))
    elif name == _DECISIONS:
        contents[0] += _contents(["*"], ":hidden:", ":glob:")


def _section_contents(caption: str, text: str) -> str:
    pages = [page for page in _PAGE.findall(text) if page == _DECISIONS or not page.startswith("decisions/")]
    return _contents(pages, ":hidden:", f":caption: {caption}")


def _contents(pages: list[str], *options: str) -> str:
    return "\n".join(["", "", "```{toctree}", *options, "", *pages, "```", ""])


def _copy_front_page(app: Sphinx, failure: Exception | None) -> None:
    """Web servers look for index.html; its links are relative to the same folder."""
    if failure is None:
        shutil.copyfile(Path(app.outdir) / f"{root_doc}.html", Path(app.outdir) / "index.html")
