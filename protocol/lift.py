"""Converts messages of one version into those of another, field by field and by name.

Handlers use one version of an API, its *shape*; requests of the other versions are lifted to it, and
responses lowered from it. Fields that the target lacks are dropped. Fields that the source lacks get the
default of Kafka's schema, or zero, the empty string or the empty array if it has none. A null also becomes
this value if the target's field is not nullable.

kio has another class for each version, even if nothing else differs. Handlers and kio's writers only read
attributes, so an entity with all attributes of the target is passed on unchanged, without a copy. A converter
is compiled once for a pair of classes.
"""

from __future__ import annotations

import dataclasses
import datetime
import uuid
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, get_args, get_origin

from kio.schema.errors import ErrorCode
from kio.static.protocol import Entity

from barnabas.protocol.field_types import without_none

Convert = Callable[[Any], Any]
"""From a value of the source's field, or from the source itself, to the target's."""

_ZEROS: Final[Mapping[type, object]] = {
    bool: False,
    ErrorCode: ErrorCode.none,
    int: 0,
    float: 0.0,
    str: "",
    bytes: b"",
    uuid.UUID: None,
    datetime.timedelta: datetime.timedelta(0),
}
"""By type, subclasses first. kio reads the zero UUID, Kafka's default, as None."""


@cache
def converter(source: type[Entity], target: type[Entity]) -> Convert | None:
    """Converts an entity of `source` into one of `target`; None if only the class differs."""
    if source is target:
        return None
    source_fields = {field.name: field for field in dataclasses.fields(source)}
    missing: dict[str, object] = {}
    converted: dict[str, Convert] = {}
    taken: list[str] = []
    for field in dataclasses.fields(target):
        source_field = source_fields.get(field.name)
        if source_field is None:
            missing[field.name] = default_of(field)
        elif (convert := _field_converter(source_field, field)) is None:
            taken.append(field.name)
        else:
            converted[field.name] = convert
    if not missing and not converted:
        return None
    return _rebuild(target, missing, converted, taken)


def default_of(field: dataclasses.Field[Any]) -> object:
    """The value of the field in a version that lacks it, from Kafka's schema."""
    if field.default is not dataclasses.MISSING:
        return field.default
    return _zero(without_none(field.type)[0])


def _rebuild(
    target: type[Entity], missing: Mapping[str, object], converted: Mapping[str, Convert], taken: list[str]
) -> Convert:
    def rebuild(entity: Entity) -> Entity:
        values = dict(missing)
        for name in taken:
            values[name] = getattr(entity, name)
        for name, convert in converted.items():
            values[name] = convert(getattr(entity, name))
        return target(**values)

    return rebuild


def _field_converter(source: dataclasses.Field[Any], target: dataclasses.Field[Any]) -> Convert | None:
    source_type, source_nullable = without_none(source.type)
    target_type, target_nullable = without_none(target.type)
    convert = _value_converter(source_type, target_type)
    if convert is None and dataclasses.is_dataclass(target_type) and "tag" in target.metadata:
        # kio leaves out a tagged field that equals its default; entities of two classes are never equal.
        names = [field.name for field in dataclasses.fields(target_type)]
        convert = _rebuild(target_type, {}, {}, names)  # type: ignore[arg-type]
    if not source_nullable:
        return convert
    if target_nullable or target_type is uuid.UUID:
        return None if convert is None else _or_default(convert, None)
    return _or_default(convert or _same, _zero(target_type))


def _value_converter(source: Any, target: Any) -> Convert | None:
    if dataclasses.is_dataclass(target):
        return converter(source, target)  # type: ignore[arg-type]
    if get_origin(target) is not tuple:
        return None
    convert = _value_converter(get_args(source)[0], get_args(target)[0])
    return None if convert is None else _each(convert)


def _each(convert: Convert) -> Convert:
    return lambda items: tuple([convert(item) for item in items])


def _or_default(convert: Convert, default: object) -> Convert:
    return lambda value: default if value is None else convert(value)


def _same(value: object) -> object:
    return value


def _zero(value_type: Any) -> object:
    if get_origin(value_type) is tuple:
        return ()
    if dataclasses.is_dataclass(value_type):
        return value_type(**{field.name: default_of(field) for field in dataclasses.fields(value_type)})  # type: ignore[operator]
    return next(zero for zero_type, zero in _ZEROS.items() if issubclass(value_type, zero_type))
