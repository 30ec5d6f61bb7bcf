"""Makes docs/reference/settings.md and the tables of group settings in other pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from os.path import relpath
from pathlib import PurePosixPath
from typing import Final

from barnabas.broker.config import tables
from barnabas.broker.config.kafka_names import REMOVED_SETTINGS, RENAMED_SETTINGS, UNUSED_SETTINGS
from barnabas.broker.config.setting import Setting, render
from barnabas.broker.config.sources import ENVIRONMENT_PREFIX
from tests.reference.markdown import code, table

_HEAD: Final = f"""\
# All settings

This page is made from the tables of the broker (`python -m tests.reference`). [Settings](../settings.md)
explains how to set them, and the settings that belong together.

- **Default.** "not set" means that the setting has no value of its own; its description says which one then
  holds.
- **Dynamic** settings can be changed while the broker runs (`kafka-configs.sh`). Topic and group settings
  always can.
- **Barnabas only** marks settings that Apache Kafka does not have.
- **Environment variable.** Each setting of the broker has one: `{ENVIRONMENT_PREFIX}`, then the name in
  capitals, with `_` for each dot. `{ENVIRONMENT_PREFIX}LOG_RETENTION_MS` sets `log.retention.ms`.
"""

_PAGE: Final = "reference/settings.md"

_NAME: Final = re.compile(r"(?<![\w`.])(?:[a-z]+\.)+[a-z]+(?:=[a-z]+)?(?![\w`])")
"""A name of a setting in a description."""

_QUOTED: Final = re.compile(r"(?<!\w)'([^' ]+)'(?!\w)")
"""A value in a description."""


def rendered() -> str:
    """The page."""
    lines = [
        _HEAD,
        "## Broker",
        "",
        *_broker_table(),
        "",
        "## Topics",
        "",
        "The default is the value of the broker's setting.",
        "",
        *_scoped_table(tables.TOPIC.values()),
        "",
        "## Groups",
        "",
        "A value must lie within the bounds that the broker's settings give.",
        "",
        *_scoped_table(tables.GROUP.values()),
        "",
        *_other_names(),
    ]
    return "\n".join(lines) + "\n"


def rendered_group_settings(page: str, patterns: Sequence[str]) -> str:
    """A table for a page of docs: the group settings that match the first pattern, then those of the next."""
    chosen = {
        name: setting
        for pattern in patterns
        for name, setting in tables.GROUP.items()
        if fnmatchcase(name, pattern)
    }
    assert chosen, f"{page}: no setting matches {patterns}"
    rows = (
        (code(name), _value(setting), _values(setting, _scoped_bounds(setting)), _meaning(setting, page))
        for name, setting in chosen.items()
    )
    return "\n".join(table(("setting", "default", "values", "effect"), rows)) + "\n"


def _broker_table() -> Iterator[str]:
    rows = (
        (
            code(one.name),
            _default(one),
            _values(one, one.allowed),
            _meaning(one, _PAGE, is_dynamic=one.dynamic),
        )
        for one in sorted(tables.BROKER.values(), key=lambda one: one.name)
    )
    return table(("setting", "default", "values", "meaning"), rows)


def _scoped_table(settings: Iterable[Setting]) -> Iterator[str]:
    rows = (
        (code(one.name), _scoped_default(one), _values(one, _scoped_allowed(one)), _meaning(one, _PAGE))
        for one in sorted(settings, key=lambda one: one.name)
    )
    return table(("setting", "default", "values", "meaning"), rows)


def _values(setting: Setting, allowed: str) -> str:
    """The type, and the allowed values if not all of the type are."""
    kind = setting.type.name.lower()
    return f"{kind}: {allowed}" if allowed else kind


def _default(setting: Setting) -> str:
    text = render(setting.default)
    return "not set" if text is None else code(text) or "empty"


def _scoped_default(setting: Setting) -> str:
    """The broker's settings, the strongest first, and the value that they have by default."""
    names = [code(name) for name, _ in setting.broker_synonyms]
    return f"{_value(setting)} from {', '.join(names)}" if names else _value(setting)


def _value(setting: Setting) -> str:
    """The default, if the broker has its own defaults."""
    if not setting.broker_synonyms:
        return _default(setting)
    values = (
        render(value * factor if factor != 1 and isinstance(value, int) else value)
        for name, factor in setting.broker_synonyms
        if (value := tables.BROKER[name].default) is not None
    )
    return next((code(value) for value in values if value), "not set")


def _scoped_allowed(setting: Setting) -> str:
    bounded = tables.BOUNDED.get(setting.name)
    if bounded is None:
        return setting.allowed
    return (
        f"{code(bounded.least_name)} ({bounded.least}) to {code(bounded.greatest_name)} ({bounded.greatest})"
    )


def _scoped_bounds(setting: Setting) -> str:
    """The bounds by default, without their names."""
    bounded = tables.BOUNDED.get(setting.name)
    return setting.allowed if bounded is None else f"{bounded.least} to {bounded.greatest}"


def _meaning(setting: Setting, page: str, *, is_dynamic: bool = False) -> str:
    """The effect, with a link to the setting's guide unless `page`, relative to docs, is that guide."""
    text = _QUOTED.sub(lambda found: code(found[1]), setting.doc)
    text = _NAME.sub(lambda found: code(found[0]) if _is_setting(found[0]) else found[0], text)
    guide, _, _ = setting.guide.partition("#")
    if guide not in ("", page):
        name = PurePosixPath(guide).stem.lstrip("0123456789-").replace("-", " ")
        text += f" See [{name}]({relpath(setting.guide, PurePosixPath(page).parent)})."
    marks = (("Dynamic.", is_dynamic), ("**Barnabas only.**", setting.ours))
    return " ".join([text, *(mark for mark, is_given in marks if is_given)])


def _is_setting(text: str) -> bool:
    name = text.partition("=")[0]
    return any(name in names for names in (tables.BROKER, tables.TOPIC, tables.GROUP))


def _other_names() -> Iterator[str]:
    yield "## Apache Kafka's names without effect"
    yield ""
    yield "A configuration may have these. The broker does not need them; a warning at the start names them."
    yield ""
    yield ", ".join(map(code, sorted(UNUSED_SETTINGS))) + "."
    yield ""
    yield "## Refused names"
    yield ""
    yield "An earlier Apache Kafka had these names. The error at the start names the remedy."
    yield ""
    renamed = {old: f"renamed to {code(new)}" for old, new in RENAMED_SETTINGS.items()}
    removed = {name: f"removed: {reason}" for name, reason in REMOVED_SETTINGS.items()}
    yield from table(
        ("name", "remedy"), ((code(name), text) for name, text in sorted((renamed | removed).items()))
    )
