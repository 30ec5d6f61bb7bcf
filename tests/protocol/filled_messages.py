"""Messages of any API and version with a value in every field, made only from kio's classes."""

from __future__ import annotations

import dataclasses
import datetime
import types
import uuid
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from itertools import count
from typing import Any, get_args, get_origin

from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType
from kio.static.protocol import Entity

from barnabas.protocol.api import APIS, ApiSpec
from barnabas.protocol.field_types import without_none

UNKNOWN_TAG = 9_999


def served_versions() -> list[tuple[ApiSpec, int]]:
    """Every version of every served API."""
    return [
        (spec, version) for spec in APIS.values() for version in range(spec.min_version, spec.max_version + 1)
    ]


def filled(entity_type: type[Entity]) -> Entity:
    """A message with different numbers and strings, two elements in each array, and no nulls."""
    return _filled(entity_type, count(1))


def made(entity_type: Any, **values: Any) -> Any:
    """An entity with those of the values for which its version has a field."""
    field_names = {field.name for field in dataclasses.fields(entity_type)}
    return entity_type(**{name: value for name, value in values.items() if name in field_names})


def written(entity: Any) -> bytes:
    """The bytes that kio writes."""
    buffer = BytesIO()
    entity_writer(entity.__class__)(buffer, entity)
    return buffer.getvalue()


def read(entity_type: type[Entity], body: bytes) -> Entity:
    """The entity that kio reads from all of `body`."""
    entity, end = entity_reader(entity_type)(body, 0)
    assert end == len(body)
    return entity


def as_fields(value: Any) -> Any:
    """Entities as dictionaries, so that different versions can be compared."""
    if _both_are(tuple, value, value):
        return tuple(as_fields(item) for item in value)
    if dataclasses.is_dataclass(value):
        return {field.name: as_fields(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value


def common_fields(value: Any, other: Any) -> Any:
    """Both as a pair, without the fields that only one of them has."""
    if _both_are(dict, value, other):
        common = {name: common_fields(value[name], other[name]) for name in value.keys() & other.keys()}
        return tuple({name: both[side] for name, both in common.items()} for side in (0, 1))
    if _both_are(tuple, value, other) and len(value) == len(other):
        pairs = list(map(common_fields, value, other))
        return tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)
    return value, other


def _both_are(kind: type, value: Any, other: Any) -> bool:
    """Not inlined: narrowing would leave the types of the items unknown to type checkers."""
    return isinstance(value, kind) and isinstance(other, kind)


def from_the_future(entity: Any) -> Any:
    """The same message with an unknown tagged field at the end of each structure in it."""
    names = [field.name for field in dataclasses.fields(entity)]
    values = {name: _value_from_the_future(getattr(entity, name)) for name in names}
    return _future_type(entity.__class__)(**values, from_the_future="skip me")


def _value_from_the_future(value: Any) -> Any:
    if _both_are(tuple, value, value):
        return tuple(_value_from_the_future(item) for item in value)
    return from_the_future(value) if dataclasses.is_dataclass(value) else value


@cache
def _future_type(entity_type: Any) -> Any:
    fields: list[tuple[str, Any, Any]] = []
    for field in dataclasses.fields(entity_type):
        default = (
            {} if field.default is dataclasses.MISSING else {"default": _value_from_the_future(field.default)}
        )
        copy = dataclasses.field(metadata=field.metadata, **default)
        fields.append((field.name, _annotation_from_the_future(field.type), copy))
    unknown = dataclasses.field(metadata={"kafka_type": "string", "tag": UNKNOWN_TAG}, default="")
    fields.append(("from_the_future", str, unknown))
    namespace = {
        "__type__": EntityType.nested,
        "__version__": entity_type.__version__,
        "__flexible__": entity_type.__flexible__,
    }
    return dataclasses.make_dataclass(
        entity_type.__name__, fields, namespace=namespace, frozen=True, kw_only=True
    )


def _annotation_from_the_future(annotation: Any) -> Any:
    if get_origin(annotation) is tuple:
        return types.GenericAlias(tuple, (_annotation_from_the_future(get_args(annotation)[0]), ...))
    value_type, is_nullable = without_none(annotation)
    if is_nullable:
        return _annotation_from_the_future(value_type) | None
    is_entity = dataclasses.is_dataclass(annotation)
    return _future_type(annotation) if is_entity else annotation


def _filled(entity_type: type[Entity], numbers: Iterator[int]) -> Entity:
    return entity_type(
        **{field.name: _value(field.type, numbers) for field in dataclasses.fields(entity_type)}
    )


def _value(annotation: Any, numbers: Iterator[int]) -> Any:
    value_type, _ = without_none(annotation)
    if get_origin(value_type) is tuple:
        return tuple(_value(get_args(value_type)[0], numbers) for _ in range(2))
    if dataclasses.is_dataclass(value_type):
        return _filled(value_type, numbers)  # type: ignore[arg-type]
    return _primitive(value_type, next(numbers))


def _primitive(value_type: type, number: int) -> object:
    if value_type is bool:
        return True
    if value_type is ErrorCode:
        return ErrorCode(number % 100)
    if issubclass(value_type, int):
        return number % 128
    if issubclass(value_type, float):
        return float(number)
    if issubclass(value_type, str):
        return f"text {number}"
    if issubclass(value_type, bytes):
        return b"bytes %d" % number
    if issubclass(value_type, uuid.UUID):
        return uuid.UUID(int=number << 64 | number)
    if issubclass(value_type, datetime.timedelta):
        return datetime.timedelta(milliseconds=number)
    assert issubclass(value_type, datetime.datetime), value_type
    return datetime.datetime.fromtimestamp(number, tz=datetime.UTC)
