"""A walk over a message's body before kio reads it, to find bytes that a peer may send and kio cannot handle.

* A claimed array length is compared with the bytes that are left. kio reserves memory for the claimed
  length, so a request of nine bytes that claims two thousand million topics would end the process.
* A null array in a field that is not nullable is refused; kio would accept it.
* Unknown tagged fields are removed, at any depth (KIP-482: a reader skips unknown fields). kio raises
  KeyError for them, and newer clients send them.

The walk is compiled once for a message class, from the metadata of kio's dataclasses. It reads only lengths
and skips everything else; kio reads and checks the values.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, NamedTuple, get_args, get_origin

from kio.static.protocol import Entity

from barnabas.protocol.errors import FrameError
from barnabas.protocol.field_types import without_none
from barnabas.protocol.varint import Buffer, read_unsigned_varint, unsigned_varint

TAGGED_FIELDS_MAX: Final = 10_000
"""The most changes to one message's tagged fields, because each needs memory; a message with more is
refused."""


class Edit(NamedTuple):
    """Replaces the bytes from `start` to `end` (exclusive)."""

    start: int
    end: int
    replacement: bytes


Walk = Callable[[Buffer, int, list[Edit]], int]
"""Skips a value at a position and returns the position after it, which may be beyond the buffer. Adds the
necessary edits, ascending. Raises FrameError, IndexError, struct.error or RecordFormatError."""


class _Shape(NamedTuple):
    walk: Walk
    bytes_min: int
    is_fixed: bool
    """Whether every value has exactly `bytes_min` bytes."""


_FIXED_BYTES: Final = {
    "bool": 1,
    "int8": 1,
    "uint8": 1,
    "int16": 2,
    "uint16": 2,
    "error_code": 2,
    "int32": 4,
    "uint32": 4,
    "timedelta_i32": 4,
    "int64": 8,
    "uint64": 8,
    "float64": 8,
    "timedelta_i64": 8,
    "datetime_i64": 8,
    "uuid": 16,
}
_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")


@cache
def compile_walk(entity_type: type[Entity]) -> Walk:
    """The walk over the body of a message of `entity_type`."""
    return _entity(entity_type).walk


def apply_edits(frame: Buffer, body_offset: int, edits: Sequence[Edit]) -> bytes:
    """The body of `frame`, changed by `edits`, without the header."""
    kept: list[Buffer] = []
    for edit in edits:
        kept += (frame[body_offset : edit.start], edit.replacement)
        body_offset = edit.end
    return b"".join((*kept, frame[body_offset:]))


@cache
def _entity(entity_type: type[Entity]) -> _Shape:
    flexible = entity_type.__flexible__
    shapes: list[_Shape] = []
    tagged: dict[int, Walk] = {}
    for field in dataclasses.fields(entity_type):
        tag: int | None = field.metadata.get("tag")
        if tag is None:
            shapes.append(_field(field, flexible))
        else:
            tagged[tag] = _field(field, flexible, can_be_null=False).walk
    if flexible:
        shapes.append(_Shape(_tagged_fields(tagged), 1, is_fixed=False))
    return _sequence(shapes)


def _field(field: dataclasses.Field[Any], flexible: bool, can_be_null: bool = True) -> _Shape:
    """A tagged field is never null on the wire, even if its type allows it; it is left out instead."""
    value_type, is_nullable = without_none(field.type)
    is_nullable = is_nullable and can_be_null
    if get_origin(value_type) is tuple:
        return _array(_value(get_args(value_type)[0], field, flexible), flexible, is_nullable)
    shape = _value(value_type, field, flexible)
    if is_nullable and dataclasses.is_dataclass(value_type):
        return _nullable_entity(shape.walk)
    return shape


def _value(value_type: Any, field: dataclasses.Field[Any], flexible: bool) -> _Shape:
    if dataclasses.is_dataclass(value_type):
        return _entity(value_type)  # type: ignore[arg-type]
    kafka_type: str = field.metadata["kafka_type"]
    if kafka_type in _FIXED_BYTES:
        return _fixed(_FIXED_BYTES[kafka_type])
    if flexible:
        return _Shape(_walk_compact_bytes, 1, is_fixed=False)
    if kafka_type == "string":
        return _Shape(_walk_string, 2, is_fixed=False)
    return _Shape(_walk_bytes, 4, is_fixed=False)


def _fixed(byte_count: int) -> _Shape:
    def walk_fixed(_buffer: Buffer, position: int, _edits: list[Edit]) -> int:
        return position + byte_count

    return _Shape(walk_fixed, byte_count, is_fixed=True)


def _sequence(shapes: Sequence[_Shape]) -> _Shape:
    """One shape after another; neighbouring fixed shapes are skipped together."""
    bytes_min = sum(shape.bytes_min for shape in shapes)
    walks: list[Walk] = []
    lead_bytes = 0
    for shape in shapes:
        if shape.is_fixed:
            lead_bytes += shape.bytes_min
            continue
        if lead_bytes:
            walks.append(_fixed(lead_bytes).walk)
            lead_bytes = 0
        walks.append(shape.walk)
    if not walks:
        return _fixed(bytes_min)
    if lead_bytes:
        walks.append(_fixed(lead_bytes).walk)

    def walk_sequence(buffer: Buffer, position: int, edits: list[Edit]) -> int:
        for walk in walks:
            position = walk(buffer, position, edits)
        return position

    return _Shape(walk_sequence, bytes_min, is_fixed=False)


def _walk_compact_bytes(buffer: Buffer, position: int, _edits: list[Edit]) -> int:
    size_and_one = buffer[position]
    if size_and_one == 0:
        return position + 1
    if size_and_one < 0x80:
        return position + size_and_one
    size_and_one, position = read_unsigned_varint(buffer, position)
    return position + size_and_one - 1


def _walk_string(buffer: Buffer, position: int, _edits: list[Edit]) -> int:
    return position + 2 + _size(_INT16.unpack_from(buffer, position)[0])


def _walk_bytes(buffer: Buffer, position: int, _edits: list[Edit]) -> int:
    return position + 4 + _size(_INT32.unpack_from(buffer, position)[0])


def _size(size_bytes: int) -> int:
    if size_bytes < -1:
        raise FrameError(f"A string's or byte array's length is {size_bytes}.")
    return max(size_bytes, 0)


def _nullable_entity(walk: Walk) -> _Shape:
    def walk_nullable(buffer: Buffer, position: int, edits: list[Edit]) -> int:
        # A signed byte: a negative value is null, any other value announces the structure.
        return position + 1 if buffer[position] >= 0x80 else walk(buffer, position + 1, edits)

    return _Shape(walk_nullable, 1, is_fixed=False)


def _array(item: _Shape, flexible: bool, is_nullable: bool) -> _Shape:
    read_count = _compact_count if flexible else _count
    walk_item, item_bytes, is_fixed = item.walk, item.bytes_min, item.is_fixed

    def walk_array(buffer: Buffer, position: int, edits: list[Edit]) -> int:
        count, position = read_count(buffer, position)
        if count < 0:
            if count < -1 or not is_nullable:
                raise FrameError(f"An array's length is {count}.")
            return position
        items_end = position + count * item_bytes
        if items_end > len(buffer):
            raise FrameError(f"An array claims {count} elements, more than its message can hold.")
        if is_fixed:
            return items_end
        for _ in range(count):
            position = walk_item(buffer, position, edits)
        return position

    return _Shape(walk_array, 1 if flexible else 4, is_fixed=False)


def _count(buffer: Buffer, position: int) -> tuple[int, int]:
    return _INT32.unpack_from(buffer, position)[0], position + 4


def _compact_count(buffer: Buffer, position: int) -> tuple[int, int]:
    count_and_one = buffer[position]
    if count_and_one < 0x80:
        return count_and_one - 1, position + 1
    count_and_one, position = read_unsigned_varint(buffer, position)
    return count_and_one - 1, position


def _tagged_fields(known: dict[int, Walk]) -> Walk:
    def walk_tagged_fields(buffer: Buffer, position: int, edits: list[Edit]) -> int:
        if buffer[position] == 0:
            return position + 1
        return _walk_tagged_fields(known, buffer, position, edits)

    return walk_tagged_fields


def _walk_tagged_fields(known: dict[int, Walk], buffer: Buffer, start: int, edits: list[Edit]) -> int:
    count, position = read_unsigned_varint(buffer, start)
    behind_count, first_edit, unknown_count = position, len(edits), 0
    for _ in range(count):
        field_start = position
        tag, position = read_unsigned_varint(buffer, position)
        if tag in known:
            position = _walk_tagged_field(known[tag], buffer, position, edits)
        else:
            size_bytes, position = read_unsigned_varint(buffer, position)
            position += size_bytes
            unknown_count += 1
            edits.append(Edit(field_start, position, b""))
        if len(edits) > TAGGED_FIELDS_MAX:
            raise FrameError(f"A message has more than {TAGGED_FIELDS_MAX} unknown tagged fields.")
    if unknown_count:
        edits.insert(first_edit, Edit(start, behind_count, unsigned_varint(count - unknown_count)))
    return position


def _walk_tagged_field(walk: Walk, buffer: Buffer, start: int, edits: list[Edit]) -> int:
    """A known tagged field, from its size on. Removing bytes inside it changes that size."""
    size_bytes, position = read_unsigned_varint(buffer, start)
    first_edit, end = len(edits), position + size_bytes
    if walk(buffer, position, edits) != end:
        raise FrameError("A tagged field does not have the size that it states.")
    if len(edits) > first_edit:
        removed = sum(edit.end - edit.start - len(edit.replacement) for edit in edits[first_edit:])
        edits.insert(first_edit, Edit(start, position, unsigned_varint(size_bytes - removed)))
    return end
