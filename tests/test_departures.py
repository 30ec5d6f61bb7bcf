"""The page on departures from the source documents agrees with the code on settings and messages."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.config import tables
from barnabas.broker.config.errors import ConfigError, InvalidValueError
from barnabas.broker.config.loading import load_config
from barnabas.broker.config.setting import LONG_MAX, Setting, SettingType, render
from barnabas.coordinator.metadata.features import SHARE_VERSION, SUPPORTED_FEATURES
from barnabas.coordinator.metadata.snapshot import SNAPSHOT_SUFFIX, SnapshotId
from barnabas.coordinator.share_group.share_group import ShareGroupState
from barnabas.protocol.api import ApiKey
from barnabas.share.partition.acknowledgement import AcknowledgeType

PAGE = Path(__file__).resolve().parents[1] / "docs/decisions/0017-departures-from-the-sources.md"
TEXT = PAGE.read_text(encoding="utf-8")
_QUOTED = re.compile(r"`([^`]+)`")
INT_MAX = 2**31 - 1
NO_BOUND = "\N{EN DASH}"


def section(heading: str) -> str:
    _, _, rest = TEXT.partition(f"\n## {heading}\n")
    assert rest, f"the page has no section {heading}"
    return rest.partition("\n## ")[0]


def rows(heading: str) -> list[list[str]]:
    """The cells of the section's table, without its head."""
    lines = [line for line in section(heading).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def quoted(cell: str) -> list[str]:
    return _QUOTED.findall(cell)


def setting_of(name: str) -> Setting:
    found = [table[name] for table in (tables.BROKER, tables.GROUP) if name in table]
    assert len(found) == 1, name
    return found[0]


def as_text(cell: str) -> str:
    """A value as a configuration has it."""
    return cell.strip("`").replace(",", "")


RENAMED = rows("Settings with another name, default or range")
ABSENT = rows("Settings that do not exist")
EQUAL = rows("Settings that are as in their source")
MESSAGES = rows("Messages")


def test_the_tables_have_rows() -> None:
    assert (len(RENAMED), len(ABSENT), len(EQUAL), len(MESSAGES)) == (12, 2, 8, 13)


@pytest.mark.parametrize("row", RENAMED, ids=lambda row: row[2])
def test_each_setting_has_the_default_of_the_page(row: list[str]) -> None:
    setting = setting_of(quoted(row[2])[0])
    assert render(setting.default) == (None if row[3] == "none" else as_text(row[3]))


@pytest.mark.parametrize("row", RENAMED, ids=lambda row: row[2])
def test_each_setting_has_the_range_of_the_page(row: list[str]) -> None:
    setting = setting_of(quoted(row[2])[0])
    if setting.type not in (SettingType.INT, SettingType.LONG):
        assert row[4:6] == [NO_BOUND, NO_BOUND]
        return
    largest = INT_MAX if setting.type is SettingType.INT else LONG_MAX
    least = int(as_text(row[4]))
    setting.parse(str(least))
    refuses(setting, least - 1)
    if row[5] == NO_BOUND:
        setting.parse(str(largest))
    else:
        greatest = int(as_text(row[5]))
        setting.parse(str(greatest))
        refuses(setting, greatest + 1)


def refuses(setting: Setting, value: int) -> None:
    with pytest.raises(InvalidValueError):
        setting.parse(str(value))


@pytest.mark.parametrize("row", RENAMED + ABSENT, ids=lambda row: row[0])
def test_the_names_of_the_sources_are_no_settings_unless_they_are_those_of_today(row: list[str]) -> None:
    name = quoted(row[0])[0]
    is_known = any(name in table for table in (tables.BROKER, tables.GROUP, tables.TOPIC))
    assert is_known == (name in quoted(row[2]) and row in RENAMED)


def test_a_start_with_an_old_name_is_refused_with_the_name_of_today() -> None:
    today = {quoted(row[0])[0]: quoted(row[2])[0] for row in RENAMED}
    sentence = section("Settings with another name, default or range").partition("A start with")[2]
    assert len(quoted(sentence)) == 6
    for name in quoted(sentence):
        with pytest.raises(ConfigError, match=re.escape(today[name])):
            load_config(None, {}, [f"{name}=1"])


def test_the_feature_share_version_is_named_where_group_share_enable_is_refused() -> None:
    assert SUPPORTED_FEATURES[SHARE_VERSION] == (0, 2)
    with pytest.raises(ConfigError, match=re.escape(SHARE_VERSION)):
        load_config(None, {}, ["group.share.enable=true"])


def test_no_other_assignor_is_accepted() -> None:
    with pytest.raises(ConfigError, match="no other assignor"):
        load_config(None, {}, ["group.share.assignors=org.apache.server.group.share.SimpleAssignor"])


@pytest.mark.parametrize("row", EQUAL, ids=lambda row: row[0])
def test_settings_that_are_as_in_their_source_have_its_default(row: list[str]) -> None:
    assert render(setting_of(quoted(row[0])[0]).default) == as_text(row[1])


def field_names(message: str) -> set[str]:
    """All fields of the newest version of a message such as "ShareFetch request", nested ones included."""
    api, kind = message.split()
    module = importlib.import_module(f"kio.schema.{_snake(api)}.v2.{kind}")
    classes = [one for _, one in inspect.getmembers(module, inspect.isclass) if dataclasses.is_dataclass(one)]
    return {field.name for one in classes for field in dataclasses.fields(one)}


def _snake(name: str) -> str:
    """As kio spells it, which leaves out the unit of a time."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower().removesuffix("_ms")


def _fields(cell: str) -> Iterator[str]:
    return map(_snake, quoted(cell))


@pytest.mark.parametrize("row", MESSAGES, ids=lambda row: f"{row[0]}, {row[1]}")
def test_messages_have_the_fields_of_the_page_and_not_those_of_the_source(row: list[str]) -> None:
    names = field_names(row[0])
    assert names.isdisjoint(_fields(row[1]))
    assert names.issuperset(_fields(row[2]))


def test_ids_of_acknowledge_types_and_apis_are_those_of_the_page() -> None:
    _, types = re.findall(r"(?:Source|Here): ((?:[A-Z]+ \d(?:, )?)+)", section("Messages"))
    assert dict(_pairs(types)) == {one.name: one.value for one in AcknowledgeType}
    apis = re.findall(r"(Share[A-Za-z]+) (\d+)", section("Messages").partition("API keys")[2])
    assert len(apis) == 3
    assert all(ApiKey[_snake(name).upper()] == int(key) for name, key in apis)


def _pairs(text: str) -> Iterator[tuple[str, int]]:
    for pair in text.split(", "):
        name, number = pair.split()
        yield name, int(number)


def test_groups_have_the_states_of_the_page() -> None:
    assert {one.value for one in ShareGroupState} == {"Empty", "Stable"}


def test_snapshots_have_the_names_of_the_page() -> None:
    assert SnapshotId(5, 2).file_name == f"{5:020}-{2:010}{SNAPSHOT_SUFFIX}"
