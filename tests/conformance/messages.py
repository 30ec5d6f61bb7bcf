"""Kafka messages of any API and version from plain values, as instances of kio's classes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from io import BytesIO
from typing import Any, Literal, NamedTuple, cast, get_args, get_origin, get_type_hints

from barnabas.protocol.api import ApiKey
from barnabas.protocol.entity_writer import compile_writer
from barnabas.protocol.kio_messages import Entity, message_class
from barnabas.protocol.primitive import milliseconds
from tests.protocol.filled_messages import read, written

__all__ = ["encoded", "message", "message_type", "read", "written"]


@cache
def message_type(api: str, version: int, side: Literal["request", "response"]) -> Any:
    """The class of the `request` or `response` of an API, named as in `share_fetch`."""
    return message_class(ApiKey[api.upper()], version, side)


def message(entity_type: Any, values: Mapping[str, Any]) -> Any:
    """A message with these values: mappings for structs, sequences for arrays, milliseconds for durations.

    A missing field has its default, or the empty value of its type. Values without a field in this version
    are left out.
    """
    made: dict[str, Any] = {}
    for name, convert, nothing in _fields(entity_type):
        if name in values:
            made[name] = values[name] if convert is None else convert(values[name])
        elif nothing is not dataclasses.MISSING:
            made[name] = nothing
    return entity_type(**made)


def encoded(entity: Any) -> bytes:
    """The bytes of `written`, sooner: `tests/protocol/test_entity_writer.py` compares both writers."""
    buffer = BytesIO()
    compile_writer(cast("type[Entity]", type(entity)))(entity, buffer.write)
    return buffer.getvalue()


class _Field(NamedTuple):
    """The conversion of a field's values, None if they stay as they are, and the value of the missing field,
    MISSING if its class has a default.
    """

    name: str
    convert: Callable[[Any], Any] | None
    nothing: Any


@cache
def _fields(entity_type: Any) -> tuple[_Field, ...]:
    """Computed once for each class, because tests send thousands of messages."""
    hints = get_type_hints(entity_type)
    return tuple(_field(field, hints[field.name]) for field in dataclasses.fields(entity_type))


def _field(field: dataclasses.Field[Any], hint: Any) -> _Field:
    kafka_type = field.metadata.get("kafka_type", "")
    nothing = _nothing(hint, kafka_type) if field.default is dataclasses.MISSING else dataclasses.MISSING
    if "timedelta" in kafka_type:
        return _Field(field.name, _duration, nothing)
    struct = _struct_of(hint)
    is_array = any(get_origin(one) is tuple for one in (hint, *get_args(hint)))
    return _Field(field.name, partial(_converted, struct) if is_array or struct else None, nothing)


def _duration(value: int | None) -> Any:
    return None if value is None else milliseconds(value)


def _converted(struct: Any, value: Any) -> Any:
    """The value of a field with arrays or structs."""
    if isinstance(value, Mapping):
        return message(struct, cast("Mapping[str, Any]", value))
    if isinstance(value, list | tuple):
        return tuple([_converted(struct, item) for item in cast("Sequence[Any]", value)])
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
