"""The pages of docs/reference are those that the code makes, and nothing is missing in them."""

from __future__ import annotations

import re

import pytest

from barnabas.broker.config import tables
from barnabas.protocol.api import APIS, ApiSpec
from tests.reference import apis, errors
from tests.reference.error_causes import CAUSES
from tests.reference.pages import FOLDER, PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_the_one_that_the_code_makes(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == PAGES[name](), "run `python -m tests.reference`"


def test_every_page_of_the_folder_is_generated() -> None:
    assert {path.name for path in FOLDER.glob("*.md")} == set(PAGES)


def test_each_setting_has_a_row() -> None:
    rows = re.findall(r"^\| `([a-z0-9.]+)` \|", PAGES["settings.md"](), re.MULTILINE)
    assert {*tables.BROKER, *tables.TOPIC, *tables.GROUP} <= set(rows)


def test_the_page_of_settings_has_defaults_bounds_and_meanings() -> None:
    page = PAGES["settings.md"]()
    log_retention = "`log.retention.ms`, `log.retention.minutes`, `log.retention.hours`"
    bounds = "`group.share.min.delivery.count.limit` (2) to `group.share.max.delivery.count.limit` (10)"
    for row in (
        "| `log.flush` | `interval` | string: one of `interval`, `always`, `never` | When appended data",
        f"| `retention.ms` | `604800000` from {log_retention} | long: at least -1 | How long records",
        f"| `share.delivery.count.limit` | `5` from `group.share.delivery.count.limit` | int: {bounds} |",
    ):
        assert f"\n{row}" in page, row


@pytest.mark.parametrize("spec", APIS.values(), ids=lambda spec: spec.name)
def test_the_docstring_of_a_handler_begins_with_the_name_of_its_api(spec: ApiSpec) -> None:
    described = apis.docstring(spec)
    assert described.name == "".join(word.capitalize() for word in spec.name.split("_"))
    assert described.purpose


def test_each_error_that_the_code_names_has_a_cause() -> None:
    assert {code.name for code in errors.used_codes()} == set(CAUSES)
