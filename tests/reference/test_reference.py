"""The generated pages and blocks of docs are those that the code makes, and nothing is missing in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from barnabas.broker.config import tables
from barnabas.protocol.api import APIS, ApiSpec
from tests.reference import apis, errors, settings
from tests.reference.error_causes import CAUSES
from tests.reference.pages import DOCS, WHOLE_PAGES, rendered_pages, with_blocks

RENDERED = rendered_pages()
SETTINGS = settings.rendered()


@pytest.mark.parametrize("path", RENDERED, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_a_page_is_the_one_that_the_code_makes(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == RENDERED[path], "run make generate"


def test_every_page_of_the_reference_is_generated() -> None:
    assert set((DOCS / "reference").glob("*.md")) <= WHOLE_PAGES.keys()


def test_the_blocks_of_a_page_are_made_and_the_rest_stays() -> None:
    text = "a\n<!-- make generate: group-settings share.order -->\nold\n<!-- end of make generate -->\nb\n"
    made = with_blocks(text, "ordering.md")
    assert re.sub("(?<=-->\n).*(?=<!--)", "old\n", made, flags=re.DOTALL) == text
    assert "| `share.order` | `none` | string: one of `none`, `key` | `key`: records of one key" in made
    assert with_blocks(made, "ordering.md") == made


@pytest.mark.parametrize("words", ["group-settings no.such.setting", "no-such-block"])
def test_a_block_of_nothing_is_a_mistake(words: str) -> None:
    with pytest.raises((AssertionError, KeyError)):
        with_blocks(f"<!-- make generate: {words} -->\n<!-- end of make generate -->", "ordering.md")


def test_each_setting_has_a_row() -> None:
    rows = re.findall(r"^\| `([a-z0-9.]+)` \|", SETTINGS, re.MULTILINE)
    assert {*tables.BROKER, *tables.TOPIC, *tables.GROUP} <= set(rows)


def test_the_guide_of_group_settings_has_each_one_once() -> None:
    rows = re.findall(
        r"^\| `([a-z0-9.]+)` \|", RENDERED[DOCS / "settings.md"].split("\n## ")[2], re.MULTILINE
    )
    assert sorted(name for name in rows if name in tables.GROUP) == sorted(tables.GROUP)


def test_the_page_of_settings_has_defaults_bounds_and_meanings() -> None:
    log_retention = "`log.retention.ms`, `log.retention.minutes`, `log.retention.hours`"
    bounds = "`group.share.min.delivery.count.limit` (2) to `group.share.max.delivery.count.limit` (10)"
    for row in (
        "| `log.flush` | `interval` | string: one of `interval`, `always`, `never` | When appended data",
        f"| `retention.ms` | `604800000` from {log_retention} | long: at least -1 | How long records",
        f"| `share.delivery.count.limit` | `5` from `group.share.delivery.count.limit` | int: {bounds} |",
    ):
        assert f"\n{row}" in SETTINGS, row


@pytest.mark.parametrize("spec", APIS.values(), ids=lambda spec: spec.name)
def test_the_docstring_of_a_handler_begins_with_the_name_of_its_api(spec: ApiSpec) -> None:
    described = apis.docstring(spec)
    assert described.name == "".join(word.capitalize() for word in spec.name.split("_"))
    assert described.purpose


def test_each_error_that_the_code_names_has_a_cause() -> None:
    assert {code.name for code in errors.used_codes()} == set(CAUSES)
