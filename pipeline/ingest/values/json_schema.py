"""JSON values by a JSON Schema, checked by jsonschema-rs.

A part with one type gets that column type. Objects with `properties` are structs; objects with only a schema
for `additionalProperties` are maps. Parts without a type, with several types or that contain themselves
become JSON text. Properties that the schema doesn't name are left out, or don't fit if it forbids them.

References must be to the same file: nothing is fetched.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any, Final, NoReturn, TypeVar, cast

import jsonschema_rs

from barnabas.pipeline.columnar import ArrowType
from barnabas.pipeline.decoding.arrow import pa
from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.ingest.values.decoder import ValueMisfit, is_list

_Time = TypeVar("_Time")
_Convert = Callable[[Any], Any]
_Shape = tuple[ArrowType, _Convert]
_JsonObject = Mapping[str, Any]

_DEPTH_MAX: Final = 32
"""Parts nested deeper become JSON text."""


class JsonDecoder:
    """Decodes values by one schema."""

    def __init__(self, schema: bytes) -> None:
        """Raises `OptionError` if this is no JSON Schema that can be used."""
        try:
            parsed: Any = json.loads(schema)
            _refuse_remote_references(parsed)
            self._validator = jsonschema_rs.validator_for(parsed)
        except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
            if isinstance(error, OptionError):
                raise
            reason = str(error).split("\n", 1)[0]
            raise OptionError("schema_file", f"this is no JSON Schema: {reason}") from error
        self.arrow_type, self._convert = _shape(parsed, parsed, ())

    def decode(self, value: bytes) -> Any:
        """See `Decoder`."""
        try:
            parsed: Any = json.loads(value, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise ValueMisfit(f"it is no JSON: {error}") from error
        try:
            self._validator.validate(parsed)
        except jsonschema_rs.ValidationError as error:
            where = "/".join(map(str, error.instance_path)) or "it"
            raise ValueMisfit(f"{where}: {error.message}") from error
        return None if parsed is None else self._convert(parsed)


def _shape(schema: Any, root: Any, within: tuple[str, ...]) -> _Shape:
    """The column type of a part; `within` are the references and parts around it."""
    found, within = _resolved(_as_object(schema), root, within)
    if found is None or len(within) > _DEPTH_MAX:
        return _AS_TEXT
    kind = _type_of(found)
    inner = (*within, "")
    if kind == "object":
        return _object_shape(found, root, inner)
    if kind == "array" and isinstance(found.get("items"), dict):
        item, convert = _shape(found["items"], root, inner)
        return pa.list_(item), lambda items: [None if value is None else convert(value) for value in items]
    if kind == "string":
        return _STRINGS.get(found.get("format", ""), _STRING)
    return _SCALARS.get(kind or "", _AS_TEXT)


def _object_shape(schema: _JsonObject, root: Any, within: tuple[str, ...]) -> _Shape:
    properties: Mapping[str, Any] = schema.get("properties", {})
    if properties:
        return _struct_shape({name: _shape(part, root, within) for name, part in properties.items()})
    rest = schema.get("additionalProperties")
    if not isinstance(rest, dict):
        return _AS_TEXT
    kind, convert = _shape(rest, root, within)
    return pa.map_(pa.string(), kind), lambda found: [
        (name, None if value is None else convert(value)) for name, value in found.items()
    ]


def _struct_shape(parts: Mapping[str, _Shape]) -> _Shape:
    def convert_object(found: Any) -> Any:
        return {
            name: None if found.get(name) is None else convert(found[name])
            for name, (_, convert) in parts.items()
        }

    return pa.struct([(name, kind) for name, (kind, _) in parts.items()]), convert_object


def _resolved(
    schema: _JsonObject | None, root: Any, within: tuple[str, ...]
) -> tuple[_JsonObject | None, tuple[str, ...]]:
    """A part, with its references and a choice between it and null resolved; None if it contains itself."""
    if schema is None:
        return None, within
    reference = _reference_in(schema)
    if reference is not None:
        if reference in within:
            return None, within
        return _resolved(_referred(reference, root), root, (*within, reference))
    choice = _as_list(schema.get("anyOf", schema.get("oneOf")))
    others = [subschema for subschema in choice if subschema != {"type": "null"}]
    if "type" in schema or len(others) != 1:
        return schema, within
    return _resolved(_as_object(others[0]), root, within)


def _reference_in(schema: _JsonObject) -> str | None:
    return schema.get("$ref")


def _referred(reference: str, root: Any) -> _JsonObject | None:
    found = _as_object(root)
    for name in reference.removeprefix("#").split("/")[1:]:
        key = name.replace("~1", "/").replace("~0", "~")
        found = None if found is None else _as_object(found.get(key))
    return found


def _as_object(part: Any) -> _JsonObject | None:
    """A part as an object; None for `true` and others, which say nothing about the type."""
    return cast("_JsonObject", part) if isinstance(part, dict) else None


def _as_list(part: Any) -> list[Any]:
    return part if is_list(part) else []


def _type_of(schema: _JsonObject) -> str | None:
    """The one type besides null; None if there are several or none."""
    kinds = schema.get("type", "object" if "properties" in schema else [])
    kinds = [kinds] if isinstance(kinds, str) else [kind for kind in kinds if kind != "null"]
    return kinds[0] if len(kinds) == 1 else None


def _refuse_remote_references(schema: Any) -> None:
    for reference in _references(schema):
        if not reference.startswith("#"):
            raise OptionError("schema_file", f"it refers to {reference}: put that into the file itself")


def _references(schema: Any) -> Iterator[str]:
    known = _as_object(schema) or {}
    reference: Any = known.get("$ref")
    if isinstance(reference, str):
        yield reference
    for part in [*known.values(), *_as_list(schema)]:
        yield from _references(part)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _moment(found: str) -> datetime:
    moment = _parsed(datetime.fromisoformat, found)
    if moment.tzinfo is None:
        raise ValueMisfit(f"{found} is no date-time: it has no offset")
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueMisfit(f"{found}: a time is out of range: {error}") from error


def _day(found: str) -> date:
    return _parsed(date.fromisoformat, found)


def _parsed(parse: Callable[[str], _Time], found: str) -> _Time:
    try:
        return parse(found)
    except ValueError as error:
        raise ValueMisfit(f"{found!r}: {error}") from error


def _as_text(found: Any) -> str:
    return json.dumps(found, ensure_ascii=False)


_AS_TEXT: Final[_Shape] = (pa.string(), _as_text)
_STRING: Final[_Shape] = (pa.string(), str)
_STRINGS: Final[Mapping[str, _Shape]] = {
    "date-time": (pa.timestamp("us", tz="UTC"), _moment),
    "date": (pa.date32(), _day),
}
_SCALARS: Final[Mapping[str, _Shape]] = {
    "integer": (pa.int64(), int),
    "number": (pa.float64(), float),
    "boolean": (pa.bool_(), bool),
}
