"""Kafka messages of any API and version from plain values, as instances of kio's classes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints

from barnabas.protocol.api import ApiKey
from barnabas.protocol.kio_messages import message_class
from barnabas.protocol.primitive import milliseconds
from tests.protocol.filled_messages import read, written

__all__ = ["message", "message_type", "read", "written"]


@cache
def message_type(api: str, version: int, side: Literal["request", "response"]) -> Any:
    """The class of the `request` or `response` of an API, named as in `share_fetch`."""
    return message_class(ApiKey[api.upper()], version, side)


def message(entity_type: Any, values: Mapping[str, Any]) -> Any:
    """A message with these values: mappings for structs, sequences for arrays, milliseconds for durations.

    A missing field has its default, or the empty value of its type. Values without a field in this version
    are left out.
    """
    hints = _hints(entity_type)
    made: dict[str, Any] = {}
    for field in dataclasses.fields(entity_type):
        if field.name in values:
            made[field.name] = _value(
                hints[field.name], field.metadata.get("kafka_type", ""), values[field.name]
            )
        elif field.default is dataclasses.MISSING:
            made[field.name] = _nothing(hints[field.name], field.metadata.get("kafka_type", ""))
    return entity_type(**made)


@cache
def _hints(entity_type: Any) -> Mapping[str, Any]:
    return get_type_hints(entity_type)


def _value(hint: Any, kafka_type: str, value: Any) -> Any:
    if value is None:
        return None
    if "timedelta" in kafka_type:
        return milliseconds(value)
    if isinstance(value, Mapping):
        return message(_struct_of(hint), cast("Mapping[str, Any]", value))
    if isinstance(value, list | tuple):
        return tuple(_value(hint, "", item) for item in cast("Sequence[Any]", value))
    return value


def _nothing(hint: Any, kafka_type: str) -> Any:
    if type(None) in get_args(hint):
        return None
    if get_origin(hint) is tuple:
        return ()
    if "timedelta" in kafka_type:
        return milliseconds(0)
    return "" if kafka_type == "string" else 0


def _struct_of(hint: Any) -> Any:
    """The struct in a hint such as `tuple[FetchTopic, ...]` or `Assignment | None`."""
    if dataclasses.is_dataclass(hint):
        return hint
    return next((found for one in get_args(hint) if (found := _struct_of(one)) is not None), None)
