"""Protobuf values by a compiled descriptor set, read by Google's protobuf package.

Unset fields with presence are null; the others have their default. Enums become names (or numbers that the
schema doesn't know), unsigned numbers the next larger type. `google.protobuf.Struct`, `Value`, `ListValue`
and `Any` become JSON text. Messages that contain themselves are refused. As usual in Protobuf, fields that
the schema doesn't know are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from barnabas.pipeline.columnar import ArrowType
from barnabas.pipeline.decoding.arrow import pa
from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.ingest.values.decoder import ValueMisfit

_Convert = Callable[[Any], Any]
_Shape = tuple[ArrowType, _Convert]

_SCALARS: Final[Mapping[int, ArrowType]] = {
    FieldDescriptor.TYPE_BOOL: pa.bool_(),
    FieldDescriptor.TYPE_BYTES: pa.binary(),
    FieldDescriptor.TYPE_STRING: pa.string(),
    FieldDescriptor.TYPE_FLOAT: pa.float32(),
    FieldDescriptor.TYPE_DOUBLE: pa.float64(),
    FieldDescriptor.TYPE_INT32: pa.int32(),
    FieldDescriptor.TYPE_SINT32: pa.int32(),
    FieldDescriptor.TYPE_SFIXED32: pa.int32(),
    FieldDescriptor.TYPE_INT64: pa.int64(),
    FieldDescriptor.TYPE_SINT64: pa.int64(),
    FieldDescriptor.TYPE_SFIXED64: pa.int64(),
    FieldDescriptor.TYPE_UINT32: pa.int64(),
    FieldDescriptor.TYPE_FIXED32: pa.int64(),
    FieldDescriptor.TYPE_UINT64: pa.decimal128(20, 0),
    FieldDescriptor.TYPE_FIXED64: pa.decimal128(20, 0),
}
_WRAPPERS: Final = "google.protobuf."
_JSON_MESSAGES: Final = frozenset(
    f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue", "Any")
)
_TIMESTAMP: Final = "google.protobuf.Timestamp"


class ProtobufDecoder:
    """Decodes values as one message."""

    def __init__(self, descriptor_set: bytes, message: str | None) -> None:
        """Raises `OptionError` for a malformed descriptor set, or a message without a column type."""
        files = descriptor_pb2.FileDescriptorSet()
        pool = descriptor_pool.DescriptorPool()
        try:
            files.ParseFromString(descriptor_set)
            for file in files.file:
                pool.Add(file)
            descriptor = pool.FindMessageTypeByName(message or _only_message(files))
        except KeyError as error:
            raise OptionError("message", f"there is no message {message}") from error
        except (DecodeError, TypeError) as error:
            raise OptionError("schema_file", f"this is no set of Protobuf descriptors: {error}") from error
        self._class: type[Message] = message_factory.GetMessageClass(descriptor)
        self.arrow_type, self._convert = _message_shape(descriptor, ())

    def decode(self, value: bytes) -> Any:
        """See `Decoder`."""
        parsed = self._class()
        try:
            parsed.ParseFromString(value)
        except DecodeError as error:
            raise ValueMisfit(f"it is no such Protobuf message: {error}") from error
        if not parsed.IsInitialized():
            raise ValueMisfit("it lacks a field that is required")
        return self._convert(parsed)


def _only_message(files: descriptor_pb2.FileDescriptorSet) -> str:
    """The message of the last file, which stands behind its imports, if it has only one."""
    if not files.file:
        raise OptionError("schema_file", "this is no set of Protobuf descriptors: it is empty")
    last = files.file[-1]
    if len(last.message_type) != 1:
        names = ", ".join(message.name for message in last.message_type) or "none"
        raise OptionError("message", f"is needed, because the file defines {names}")
    return ".".join(filter(None, (last.package, last.message_type[0].name)))


def _message_shape(descriptor: Descriptor, within: tuple[str, ...]) -> _Shape:
    name = descriptor.full_name
    if name == _TIMESTAMP:
        return pa.timestamp("us", tz="UTC"), _moment
    if name in _JSON_MESSAGES:
        return pa.string(), lambda found: json_format.MessageToJson(found, indent=None)
    if name in within:
        raise OptionError("message", f"{name} contains itself: there is no column type")
    if name.startswith(_WRAPPERS) and name.endswith("Value"):
        kind, convert = _single_shape(descriptor.fields_by_name["value"], within)
        return kind, lambda found: convert(found.value)
    if not descriptor.fields:
        raise OptionError("message", f"{name} has no fields")
    shapes = {field.name: _field_shape(field, (*within, name)) for field in descriptor.fields}
    return pa.struct([(field, kind) for field, (kind, _) in shapes.items()]), _struct_convert(
        {field: convert for field, (_, convert) in shapes.items()}
    )


def _struct_convert(converts: Mapping[str, _Convert]) -> _Convert:
    def convert_message(found: Any) -> Any:
        return {name: convert(found) for name, convert in converts.items()}

    return convert_message


def _field_shape(field: FieldDescriptor, within: tuple[str, ...]) -> _Shape:
    """The type of a field, and the function that gets it from its message."""
    name = field.name
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        return _map_shape(name, inner, within)
    kind, convert = _single_shape(field, within)
    if field.is_repeated:
        return pa.list_(kind), lambda found: [convert(value) for value in getattr(found, name)]
    if field.has_presence:
        return kind, lambda found: convert(getattr(found, name)) if found.HasField(name) else None
    return kind, lambda found: convert(getattr(found, name))


def _map_shape(name: str, entry: Descriptor, within: tuple[str, ...]) -> _Shape:
    key_kind, convert_key = _single_shape(entry.fields_by_name["key"], within)
    kind, convert = _single_shape(entry.fields_by_name["value"], within)
    return pa.map_(key_kind, kind), lambda found: [
        (convert_key(key), convert(value)) for key, value in getattr(found, name).items()
    ]


def _single_shape(field: FieldDescriptor, within: tuple[str, ...]) -> _Shape:
    if field.message_type is not None:
        return _message_shape(field.message_type, within)
    if field.enum_type is not None:
        return pa.string(), _enum_convert(field.enum_type)
    return _SCALARS[field.type], _unchanged


def _enum_convert(kind: EnumDescriptor) -> _Convert:
    names = {number: value.name for number, value in kind.values_by_number.items()}
    return lambda number: names.get(number, str(number))


def _moment(found: Any) -> Any:
    try:
        return found.ToDatetime().replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise ValueMisfit(f"a time is out of range: {error}") from error


def _unchanged(found: Any) -> Any:
    return found
