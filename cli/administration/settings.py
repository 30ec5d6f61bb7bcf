"""`barnabas config`: the settings of a topic, a group or a broker, with the source of each value; changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from barnabas.cli.printing import Printer, Row
from barnabas.cli.target import NotFoundError, Target
from barnabas.client.admin.settings import (
    ALL_BROKERS,
    Resource,
    ResourceType,
    Setting,
    Source,
    alter_settings,
    describe_after,
    describe_settings,
)
from barnabas.protocol.nearest_name import nearest_name

DEFAULTS_OF_BROKERS: Final = "default"
"""The name of the settings of all brokers; the names of single brokers are numbers."""

_COLUMNS: Final = {"name": "SETTING", "value": "VALUE", "source": "SET BY"}
_SOURCES: Final[Mapping[Source, str]] = {
    Source.UNKNOWN: "unknown",
    Source.TOPIC: "topic",
    Source.BROKER: "broker",
    Source.ALL_BROKERS: "all brokers",
    Source.CONFIGURATION: "configuration",
    Source.DEFAULT: "default",
    Source.LOGGER: "logger",
    Source.CLIENT_METRICS: "client metrics",
    Source.GROUP: "group",
}


def resource_of(kind: str, name: str) -> Resource:
    """The resource that the words of the command line name: topic, group or broker, and its name."""
    is_default = kind == "broker" and name == DEFAULTS_OF_BROKERS
    return Resource(ResourceType[kind.upper()], ALL_BROKERS if is_default else name)


async def print_settings(
    target: Target, printer: Printer, resource: Resource, names: Sequence[str], *, with_defaults: bool
) -> None:
    """Print the settings with these names; without names those that are set, or all.

    Raises `ConsumerError` and `NotFoundError`.
    """
    async with target.administer() as admin:
        settings = await describe_settings(admin, resource)
    _check_names(names, [setting.name for setting in settings])
    if names:
        wanted = [setting for setting in settings if setting.name in names]
    else:
        wanted = [setting for setting in settings if with_defaults or setting.source is not Source.DEFAULT]
    printer.table([_row(resource, setting) for setting in wanted], _COLUMNS)
    if not wanted:
        printer.text("  All settings have their defaults; --all shows them.")


async def change_settings(
    target: Target, printer: Printer, resource: Resource, changes: Mapping[str, str | None]
) -> None:
    """Set the values, None for the default, and print the values in force.

    Raises `ConsumerError`, and `NotFoundError` for an unknown name; then nothing is changed.
    """
    async with target.administer() as admin:
        before = await describe_settings(admin, resource)
        if resource.name != ALL_BROKERS:  # the broker lists only those of them that are set
            _check_names(changes, [setting.name for setting in before])
        await alter_settings(admin, resource, changes)
        settings = await describe_after(admin, resource, changes, before)
    printer.table([_row(resource, setting) for setting in settings if setting.name in changes], _COLUMNS)


def _check_names(names: Collection[str], known: Collection[str]) -> None:
    """Raises `NotFoundError` for an unknown name, and suggests the nearest one."""
    for name in names:
        if name not in known:
            nearest = nearest_name(name, known)
            hint = f"; is {nearest} meant?" if nearest else ""
            raise NotFoundError(f"There is no setting {name}{hint}")


def _row(resource: Resource, setting: Setting) -> Row:
    return {
        "type": "setting",
        "resource": resource.type.name.lower(),
        "resource_name": resource.name,
        "name": setting.name,
        "value": "(hidden)" if setting.is_sensitive else setting.value,
        "source": _SOURCES[setting.source],
        "is_read_only": setting.is_read_only,
    }
