"""A writer of kio's messages, compiled once for each class from the metadata of its dataclass.

The bytes equal those of kio's own writer, except that durations beyond a float's precision stay exact.
Request headers are not supported, because their client id is never compact. kio creates a buffer for each
entity's tagged fields and makes several calls for each field, which took seconds for a response with many
names. Values are trusted, because Barnabas created them: one that does not fit its field raises struct.error,
AttributeError or TypeError.
"""

from __future__ import annotations

import dataclasses
import datetime
import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from io import BytesIO
from operator import attrgetter
from typing import Any, Final, NamedTuple, get_args, get_origin

from kio.static.protocol import Entity

from barnabas.protocol.field_types import without_none
from barnabas.protocol.lift import default_of
from barnabas.protocol.message_parts import INT16, INT32, NO_TAGS, compact_count, tagged_fields
from barnabas.protocol.primitive import MILLISECOND
from barnabas.protocol.varint import unsigned_varint

Emit = Callable[[bytes], object]
"""Receives the next bytes."""
Write = Callable[[Any, Emit], object]
"""Emits a value."""


class _Fixed(NamedTuple):
    """The packing of a value of fixed size; `attribute` is the attribute to pack, empty for the value."""

    format: str
    attribute: str = ""


class _Part(NamedTuple):
    """Neighbouring fields of an entity: a getter, and a writer for its result."""

    get: Callable[[Any], Any]
    write: Write


class _TaggedPart(NamedTuple):
    tag: int
    get: Callable[[Any], Any]
    write: Write
    default: object


_FIXED: Final = {
    "bool": _Fixed("?"),
    "int8": _Fixed("b"),
    "uint8": _Fixed("B"),
    "int16": _Fixed("h"),
    "uint16": _Fixed("H"),
    "error_code": _Fixed("h", "value"),
    "int32": _Fixed("i"),
    "uint32": _Fixed("I"),
    "int64": _Fixed("q"),
    "uint64": _Fixed("Q"),
    "float64": _Fixed("d"),
}
_INT64: Final = struct.Struct(">q")
_NULL_ENTITY, _ENTITY_FOLLOWS = b"\xff", b"\x01"


@cache
def compile_writer(entity_type: type[Entity]) -> Write:
    """The writer for entities of this class, or of one that has all its fields."""
    parts = _parts(entity_type)

    def write_entity(entity: Any, emit: Emit) -> None:
        for get, write in parts:
            write(get(entity), emit)

    return write_entity


def _parts(entity_type: type[Entity]) -> list[_Part]:
    parts: list[_Part] = []
    tagged: list[_TaggedPart] = []
    run: list[dataclasses.Field[Any]] = []
    for field in dataclasses.fields(entity_type):
        if "tag" in field.metadata:
            tagged.append(_tagged_part(field))
        elif _is_fixed(field):
            run.append(field)
        else:
            parts += (*_fixed_run(run), _part(field, entity_type.__flexible__))
            run = []
    parts += _fixed_run(run)
    if entity_type.__flexible__:
        parts.append(_Part(_itself, _tagged_fields(sorted(tagged, key=lambda part: part.tag))))
    return parts


def _itself(entity: Any) -> Any:
    return entity


def _is_fixed(field: dataclasses.Field[Any]) -> bool:
    is_array = get_origin(without_none(field.type)[0]) is tuple
    return not is_array and field.metadata.get("kafka_type") in _FIXED


def _fixed_run(fields: Sequence[dataclasses.Field[Any]]) -> list[_Part]:
    """Neighbouring fields of fixed size, packed together."""
    if not fields:
        return []
    rows = [(field.name, _FIXED[field.metadata["kafka_type"]]) for field in fields]
    get = attrgetter(*[f"{name}.{fixed.attribute}" if fixed.attribute else name for name, fixed in rows])
    pack = struct.Struct(">" + "".join(fixed.format for _, fixed in rows)).pack

    def write_one(value: Any, emit: Emit) -> None:
        emit(pack(value))

    def write_all(values: Any, emit: Emit) -> None:
        emit(pack(*values))

    return [_Part(get, write_one if len(rows) == 1 else write_all)]


def _part(field: dataclasses.Field[Any], flexible: bool) -> _Part:
    return _Part(attrgetter(field.name), _field(field, flexible))


def _field(field: dataclasses.Field[Any], flexible: bool) -> Write:
    value_type, is_nullable = without_none(field.type)
    if get_origin(value_type) is tuple:
        return _array(_value(get_args(value_type)[0], field, flexible), flexible)
    write = _value(value_type, field, flexible)
    # A tagged field cannot be null on the wire, so it is left out.
    if not is_nullable or "tag" in field.metadata:
        return write
    if dataclasses.is_dataclass(value_type):
        return _nullable(write, _NULL_ENTITY, _ENTITY_FOLLOWS)
    return _nullable(write, _null(field.metadata["kafka_type"], flexible))


def _value(value_type: Any, field: dataclasses.Field[Any], flexible: bool) -> Write:
    if dataclasses.is_dataclass(value_type):
        return compile_writer(value_type)  # type: ignore[arg-type]
    kafka_type: str = field.metadata["kafka_type"]
    if kafka_type in _FIXED:
        pack = struct.Struct(">" + _FIXED[kafka_type].format).pack
        return lambda value, emit: emit(pack(value))
    return (_COMPACT if flexible else _NOT_COMPACT).get(kafka_type) or _IN_BOTH[kafka_type]


def _null(kafka_type: str, flexible: bool) -> bytes:
    match kafka_type:
        case "uuid":
            return bytes(16)
        case "datetime_i64":
            return _INT64.pack(-1)
        case _ if flexible:
            return b"\x00"
        case "string":
            return INT16.pack(-1)
        case _:
            return INT32.pack(-1)


def _nullable(write: Write, null: bytes, prefix: bytes = b"") -> Write:
    def write_nullable(value: Any, emit: Emit) -> None:
        if value is None:
            emit(null)
            return
        if prefix:
            emit(prefix)
        write(value, emit)

    return write_nullable


def _array(write_item: Write, flexible: bool) -> Write:
    encode_count = compact_count if flexible else INT32.pack

    def write_array(items: Sequence[Any] | None, emit: Emit) -> None:
        emit(encode_count(-1 if items is None else len(items)))
        for item in items or ():
            write_item(item, emit)

    return write_array


def _write_compact_string(text: str, emit: Emit) -> None:
    data = text.encode()
    emit(unsigned_varint(len(data) + 1) + data)


def _write_compact_bytes(data: bytes, emit: Emit) -> None:
    emit(unsigned_varint(len(data) + 1) + data)


def _write_string(text: str, emit: Emit) -> None:
    data = text.encode()
    emit(INT16.pack(len(data)) + data)


def _write_bytes(data: bytes, emit: Emit) -> None:
    emit(INT32.pack(len(data)) + data)


def _write_uuid(value: uuid.UUID, emit: Emit) -> None:
    emit(value.bytes)


def _write_duration_i32(duration: datetime.timedelta, emit: Emit) -> None:
    emit(INT32.pack(duration // MILLISECOND))


def _write_duration_i64(duration: datetime.timedelta, emit: Emit) -> None:
    emit(_INT64.pack(duration // MILLISECOND))


def _write_time(time: datetime.datetime, emit: Emit) -> None:
    emit(_INT64.pack(round(time.timestamp() * 1000)))


_COMPACT: Final[Mapping[str, Write]] = {
    "string": _write_compact_string,
    "bytes": _write_compact_bytes,
    "records": _write_compact_bytes,
}
_NOT_COMPACT: Final[Mapping[str, Write]] = {
    "string": _write_string,
    "bytes": _write_bytes,
    "records": _write_bytes,
}
_IN_BOTH: Final[Mapping[str, Write]] = {
    "uuid": _write_uuid,
    "timedelta_i32": _write_duration_i32,
    "timedelta_i64": _write_duration_i64,
    "datetime_i64": _write_time,
}


def _tagged_part(field: dataclasses.Field[Any]) -> _TaggedPart:
    write = _field(field, flexible=True)
    return _TaggedPart(field.metadata["tag"], attrgetter(field.name), write, default_of(field))


def _tagged_fields(parts: Sequence[_TaggedPart]) -> Write:
    """The end of a flexible structure: fields with non-default values, by tag (KIP-482)."""
    if not parts:
        return lambda _, emit: emit(NO_TAGS)

    def write_tagged_fields(entity: Any, emit: Emit) -> None:
        fields: list[tuple[int, bytes]] = []
        for tag, get, write, default in parts:
            value = get(entity)
            if value != default:
                content = BytesIO()
                write(value, content.write)
                fields.append((tag, content.getvalue()))
        emit(tagged_fields(fields))

    return write_tagged_fields
