"""Avro values by an .avsc file, read by fastavro.

A union may have `null` and one other type. Other unions have no column type and are refused, as are schemas
that contain themselves. Logical types without a counterpart in Spark (times of day, nanoseconds, durations,
UUIDs) become columns of their stored type.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final, cast

from barnabas.pipeline.columnar import ArrowType
from barnabas.pipeline.decoding.arrow import pa
from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.ingest.values.decoder import ValueMisfit, is_list

fastavro: Final[Any] = import_module("fastavro")
"""By name, since its type information is incomplete."""

_PRIMITIVES: Final[Mapping[str, ArrowType]] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL: Final[Mapping[str, ArrowType]] = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("us", tz="UTC"),
    "timestamp-micros": pa.timestamp("us", tz="UTC"),
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
}
_DECIMAL_DIGITS_MAX: Final = 38

_Convert = Callable[[Any], Any]
_Shape = tuple[ArrowType, "_Convert | None"]
"""A type, and the conversion of fastavro's objects to Arrow's; None if none is needed."""


class AvroDecoder:
    """Decodes values by one schema."""

    def __init__(self, schema: bytes) -> None:
        """Raises `OptionError` if this is no Avro schema, or has no column type."""
        try:
            plain: Any = _without_odd_logical_types(json.loads(schema))
            self._schema: Any = fastavro.parse_schema(plain)
        except (ValueError, TypeError, KeyError, fastavro.schema.SchemaParseException) as error:
            raise OptionError("schema_file", f"this is no Avro schema: {error}") from error
        self.arrow_type, self._convert = _Shapes().shape(self._schema, "the value", ())

    def decode(self, value: bytes) -> Any:
        """See `Decoder`. fastavro has no error class for malformed values: it raises many kinds."""
        stream = io.BytesIO(value)
        read = fastavro.schemaless_reader(stream, self._schema, None)
        if stream.tell() != len(value):
            raise ValueMisfit(f"{len(value) - stream.tell()} bytes are left behind the Avro value")
        return read if self._convert is None else self._convert(read)


class _Shapes:
    """The column types of the parts of a schema; a part may use the names of earlier definitions."""

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}

    def shape(self, schema: Any, where: str, within: tuple[str, ...]) -> _Shape:
        """`within` are the records around this part."""
        if is_list(schema):
            return self.shape(_one_besides_null(schema, where), where, within)
        if isinstance(schema, str):
            return self._of_name(schema, where, within)
        kind = schema["type"]
        if kind in ("record", "error"):
            return self._of_record(schema, where, within)
        if kind == "array":
            return self._of_array(schema, where, within)
        if kind == "map":
            return self._of_map(schema, where, within)
        if kind in ("enum", "fixed"):
            self._named[schema["name"]] = schema
        return _of_scalar(schema, where) if isinstance(kind, str) else self.shape(kind, where, within)

    def _of_name(self, name: str, where: str, within: tuple[str, ...]) -> _Shape:
        if name in within:
            raise OptionError("schema_file", f"{where} contains itself, by {name}: there is no column type")
        if name in self._named:
            return self.shape(self._named[name], where, within)
        return _of_scalar({"type": name}, where)

    def _of_record(self, schema: Any, where: str, within: tuple[str, ...]) -> _Shape:
        name = schema["name"]
        self._named[name] = schema
        shapes = {
            field["name"]: self.shape(field["type"], f"{where}.{field['name']}", (*within, name))
            for field in schema["fields"]
        }
        if not shapes:
            raise OptionError("schema_file", f"{where} has no fields")
        converts = {field: convert for field, (_, convert) in shapes.items() if convert is not None}

        def convert_record(read: Any) -> Any:
            for field, convert in converts.items():
                if read[field] is not None:
                    read[field] = convert(read[field])
            return read

        arrow_type = pa.struct([(field, kind) for field, (kind, _) in shapes.items()])
        return arrow_type, convert_record if converts else None

    def _of_array(self, schema: Any, where: str, within: tuple[str, ...]) -> _Shape:
        kind, convert = self.shape(schema["items"], f"{where}[]", within)
        if convert is None:
            return pa.list_(kind), None
        return pa.list_(kind), lambda read: [None if value is None else convert(value) for value in read]

    def _of_map(self, schema: Any, where: str, within: tuple[str, ...]) -> _Shape:
        kind, convert = self.shape(schema["values"], f"{where}{{}}", within)

        def convert_map(read: Any) -> Any:
            if convert is None:
                return list(read.items())
            return [(key, None if value is None else convert(value)) for key, value in read.items()]

        return pa.map_(pa.string(), kind), convert_map


def _of_scalar(schema: Any, where: str) -> _Shape:
    kind, logical = schema["type"], schema.get("logicalType")
    if logical == "decimal":
        return pa.decimal128(schema["precision"], schema.get("scale", 0)), None
    if logical is not None:
        return _LOGICAL[logical], None
    if kind == "enum":
        return pa.string(), None
    if kind == "fixed":
        return pa.binary(), None
    if kind not in _PRIMITIVES:
        raise OptionError("schema_file", f"{where} is {kind}, for which there is no column type")
    return _PRIMITIVES[kind], None


def _one_besides_null(union: list[Any], where: str) -> Any:
    others = [branch for branch in union if branch != "null"]
    if len(others) != 1:
        raise OptionError(
            "schema_file", f"{where} is a union of {len(others)} types besides null: there is no column type"
        )
    return others[0]


def _without_odd_logical_types(schema: Any) -> Any:
    """The schema without logical types that have no column type: fastavro then reads the stored type."""
    if is_list(schema):
        return [_without_odd_logical_types(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    parts = cast("dict[str, Any]", schema)
    kept = {name: _without_odd_logical_types(part) for name, part in parts.items()}
    logical = kept.get("logicalType")
    is_small = kept.get("precision", 0) <= _DECIMAL_DIGITS_MAX
    if logical is not None and logical not in _LOGICAL and not (logical == "decimal" and is_small):
        del kept["logicalType"]
    return kept
