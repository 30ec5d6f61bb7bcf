"""A declarative codec for records that Kafka stores: coordinator and metadata records.

A record is a frozen dataclass whose annotations are its schema, in the order of Kafka's JSON definition:

    @dataclass(frozen=True, slots=True, kw_only=True)
    class ShareGroupMemberMetadataValue:
        rack_id: String | None
        client_id: String
        subscribed_topic_names: tuple[String, ...]
        joined_at_ms: Annotated[Int64, Since(1)] = -1
        comment: Annotated[String, Tag(7)] = ""

`| None` makes strings, bytes, arrays and tagged structures nullable. `tuple[X, ...]` is an array, another
such dataclass a structure. `Since(n)` marks a field that older versions lack. `Tag(n)` marks a tagged field,
which is left out while it has its default. Encoder and decoder are built once per class, version and
flexibility (KIP-482: compact lengths and tagged fields). Unknown tagged fields are skipped. `record_types`
and `metadata_records` add the version or type in front of a record; kio has the requests and responses.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    Protocol,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)
from uuid import UUID

from barnabas.protocol.varint import Buffer, RecordFormatError, read_unsigned_varint, unsigned_varint


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


Record = TypeVar("Record", bound=_Dataclass)


class Codec(NamedTuple):
    """`write` returns a value's bytes, `read` the value at a position and the position after it."""

    write: Callable[[Any], bytes]
    read: Callable[[bytes, int], tuple[Any, int]]


@dataclasses.dataclass(frozen=True, slots=True)
class Since:
    """Marks a field that versions before `version` lack; in those it has its default."""

    version: int


@dataclasses.dataclass(frozen=True, slots=True)
class Tag:
    """Marks a tagged field: written only if it differs from its default, and skipped by older readers."""

    number: int


@dataclasses.dataclass(frozen=True, slots=True)
class _Scalar:
    """A type with the same encoding in every version."""

    codec: Codec


@dataclasses.dataclass(frozen=True, slots=True)
class _Sized:
    """A type with its length in front: i16 or i32, or compact in flexible versions."""

    length_format: str
    to_bytes: Callable[[Any], bytes]
    from_bytes: Callable[[bytes], Any]


def _fixed(value_format: str) -> _Scalar:
    packer = struct.Struct(">" + value_format)

    def read(data: bytes, position: int) -> tuple[Any, int]:
        return packer.unpack_from(data, position)[0], position + packer.size

    return _Scalar(Codec(packer.pack, read))


def _read_uuid(data: bytes, position: int) -> tuple[UUID, int]:
    return UUID(bytes=_take(data, position, 16)), position + 16


def _uuid_bytes(value: UUID) -> bytes:
    return value.bytes


Int8 = Annotated[int, _fixed("b")]
Int16 = Annotated[int, _fixed("h")]
UInt16 = Annotated[int, _fixed("H")]
Int32 = Annotated[int, _fixed("i")]
Int64 = Annotated[int, _fixed("q")]
Float64 = Annotated[float, _fixed("d")]
Bool = Annotated[bool, _fixed("?")]
Uuid = Annotated[UUID, _Scalar(Codec(_uuid_bytes, _read_uuid))]
String = Annotated[str, _Sized("h", str.encode, bytes.decode)]
Bytes = Annotated[bytes, _Sized("i", bytes, bytes)]


def encode(record: _Dataclass, version: int, *, flexible: bool = True) -> bytes:
    """The bytes of `record` in `version`; ValueError if a field that the version lacks is not its default."""
    return _struct_codec(type(record), version, flexible).write(record)


def decode(record_class: type[Record], data: Buffer, version: int, *, flexible: bool = True) -> Record:
    """The record in `data`; RecordFormatError if it is malformed or if bytes follow it."""
    record, end = decode_first(record_class, data, version, flexible=flexible)
    if end != len(data):
        raise RecordFormatError(
            f"{record_class.__name__} version {version} ends at byte {end} of {len(data)}."
        )
    return record


def decode_first(
    record_class: type[Record], data: Buffer, version: int, *, flexible: bool = True
) -> tuple[Record, int]:
    """The record at the start of `data`, and its end; RecordFormatError if it is malformed."""
    codec = _struct_codec(record_class, version, flexible)
    try:
        record, end = codec.read(bytes(data), 0)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise RecordFormatError(f"{record_class.__name__} version {version} is malformed: {error}") from error
    assert isinstance(record, record_class)
    return record, end


class _Field(NamedTuple):
    name: str
    codec: Codec
    default: Any
    tag: int | None


@cache
def _struct_codec(record_class: type, version: int, flexible: bool) -> Codec:
    fields, absent = _fields(record_class, version, flexible)
    plain = [field for field in fields if field.tag is None]
    tagged = {field.tag: field for field in fields if field.tag is not None}
    assert flexible or not tagged, f"{record_class.__name__} has tagged fields"

    def write(record: Any) -> bytes:
        for name, default in absent.items():
            if getattr(record, name) != default:
                raise ValueError(f"{record_class.__name__} version {version} has no {name}.")
        encoded = [field.codec.write(getattr(record, field.name)) for field in plain]
        if flexible:
            encoded.append(_write_tagged(record, tagged))
        return b"".join(encoded)

    def read(data: bytes, position: int) -> tuple[Any, int]:
        values: dict[str, Any] = {}
        for field in plain:
            values[field.name], position = field.codec.read(data, position)
        if flexible:
            position = _read_tagged(data, position, tagged, values)
        return record_class(**values), position

    return Codec(write, read)


def _write_tagged(record: Any, tagged: dict[int, _Field]) -> bytes:
    present = {
        number: field.codec.write(getattr(record, field.name))
        for number, field in sorted(tagged.items())
        if getattr(record, field.name) != field.default
    }
    encoded = [unsigned_varint(len(present))]
    for number, data in present.items():
        encoded += (unsigned_varint(number), unsigned_varint(len(data)), data)
    return b"".join(encoded)


def _read_tagged(data: bytes, position: int, tagged: dict[int, _Field], values: dict[str, Any]) -> int:
    count, position = read_unsigned_varint(data, position)
    for _ in range(count):
        number, position = read_unsigned_varint(data, position)
        size, position = read_unsigned_varint(data, position)
        field_data = _take(data, position, size)
        position += size
        if number in tagged:
            field = tagged[number]
            values[field.name], end = field.codec.read(field_data, 0)
            if end != size:
                raise RecordFormatError(f"Tagged field {field.name} takes {end} of its {size} bytes.")
    return position


def _fields(record_class: type, version: int, flexible: bool) -> tuple[list[_Field], dict[str, Any]]:
    """The fields of the version, and the defaults of the fields that it lacks."""
    annotations = get_type_hints(record_class, include_extras=True)
    present: list[_Field] = []
    absent: dict[str, Any] = {}
    for field in dataclasses.fields(record_class):
        annotation = annotations[field.name]
        marks = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
        since = next((mark.version for mark in marks if isinstance(mark, Since)), 0)
        tag = next((mark.number for mark in marks if isinstance(mark, Tag)), None)
        has_default = field.default is not dataclasses.MISSING
        assert has_default or (tag is None and since == 0), f"{field.name} needs a default"
        if version < since:
            absent[field.name] = field.default
        else:
            codec = _codec(annotation, version, flexible)
            present.append(_Field(field.name, codec, field.default, tag))
    return present, absent


def _codec(annotation: Any, version: int, flexible: bool, nullable: bool = False) -> Codec:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        (inner,) = (argument for argument in arguments if argument is not NoneType)
        return _codec(inner, version, flexible, nullable=True)
    if origin is tuple:
        return _array_codec(_codec(arguments[0], version, flexible), flexible, nullable)
    if origin is Annotated:
        for mark in arguments[1:]:
            if isinstance(mark, _Sized):
                return _sized_codec(mark, flexible, nullable)
            if isinstance(mark, _Scalar):
                assert not nullable, f"{annotation} cannot be null"
                return mark.codec
        return _codec(arguments[0], version, flexible, nullable)
    assert dataclasses.is_dataclass(annotation), f"{annotation} has no encoding"
    assert isinstance(annotation, type)
    codec = _struct_codec(annotation, version, flexible)
    return _nullable_struct_codec(codec) if nullable else codec


def _nullable_struct_codec(struct_codec: Codec) -> Codec:
    """A nullable tagged structure: the first byte is 0 for null."""

    def write(value: Any) -> bytes:
        return b"\0" if value is None else b"\1" + struct_codec.write(value)

    def read(data: bytes, position: int) -> tuple[Any, int]:
        if data[position] == 0:
            return None, position + 1
        return struct_codec.read(data, position + 1)

    return Codec(write, read)


def _sized_codec(sized: _Sized, flexible: bool, nullable: bool) -> Codec:
    write_length, read_length = _length_codec(sized.length_format, flexible, nullable)

    def write(value: Any) -> bytes:
        if value is None:
            return write_length(None)
        data = sized.to_bytes(value)
        return write_length(len(data)) + data

    def read(data: bytes, position: int) -> tuple[Any, int]:
        length, position = read_length(data, position)
        if length is None:
            return None, position
        return sized.from_bytes(_take(data, position, length)), position + length

    return Codec(write, read)


def _array_codec(element: Codec, flexible: bool, nullable: bool) -> Codec:
    write_length, read_length = _length_codec("i", flexible, nullable)

    def write(values: Any) -> bytes:
        if values is None:
            return write_length(None)
        return write_length(len(values)) + b"".join([element.write(value) for value in values])

    def read(data: bytes, position: int) -> tuple[Any, int]:
        length, position = read_length(data, position)
        if length is None:
            return None, position
        values: list[Any] = []
        for _ in range(length):
            value, position = element.read(data, position)
            values.append(value)
        return tuple(values), position

    return Codec(write, read)


def _length_codec(length_format: str, flexible: bool, nullable: bool) -> Codec:
    """A length or count, None for null.

    Each element needs at least one byte, which bounds the accepted count.
    """
    packer = struct.Struct(">" + length_format)

    def write(length: int | None) -> bytes:
        if length is None and not nullable:
            raise ValueError("A field that cannot be null is None.")
        stated = -1 if length is None else length
        return unsigned_varint(stated + 1) if flexible else packer.pack(stated)

    def read(data: bytes, position: int) -> tuple[int | None, int]:
        if flexible:
            stated, position = read_unsigned_varint(data, position)
            length = stated - 1
        else:
            (length,) = packer.unpack_from(data, position)
            position += packer.size
        if length == -1 and nullable:
            return None, position
        if not 0 <= length <= len(data) - position:
            raise RecordFormatError(
                f"The length {length} at byte {position} does not fit {len(data)} bytes of data."
            )
        return length, position

    return Codec(write, read)


def _take(data: bytes, position: int, size: int) -> bytes:
    taken = data[position : position + size]
    if len(taken) != size:
        raise RecordFormatError(f"A field of {size} bytes at byte {position} is cut short at {len(data)}.")
    return taken
