"""The declarative codec: each type, nullability, arrays, structures, versions and tagged fields."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any
from uuid import UUID

import pytest

from barnabas.protocol.schema import (
    Bool,
    Bytes,
    Int8,
    Int16,
    Int32,
    Int64,
    Since,
    String,
    Tag,
    UInt16,
    Uuid,
    decode,
    encode,
)
from barnabas.protocol.varint import RecordFormatError

TOPIC_ID = UUID("01020304-0506-0708-1112-131415161718")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalars:
    tiny: Int8
    small: Int16
    port: UInt16
    medium: Int32
    large: Int64
    flag: Bool
    topic_id: Uuid


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    name: String
    rack: String | None
    data: Bytes
    nullable_data: Bytes | None
    numbers: tuple[Int32, ...]
    nullable_numbers: tuple[Int32, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    topic_id: Uuid
    partitions: tuple[Int16, ...]
    since_one: Annotated[Int8, Since(1)] = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    inner: Inner
    inners: tuple[Inner, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Versioned:
    first: Int8
    second: Annotated[Int8, Since(2)] = 5
    third: Int8


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedFields:
    plain: Int8
    far: Annotated[Int64, Tag(10000)] = 0
    near: Annotated[String | None, Tag(3)] = None
    newer: Annotated[tuple[Int8, ...], Since(1), Tag(4)] = ()


SCALARS = Scalars(tiny=-2, small=-3, port=65_535, medium=4, large=-5, flag=True, topic_id=TOPIC_ID)
EMPTY = Texts(name="", rack=None, data=b"", nullable_data=None, numbers=(), nullable_numbers=None)
FULL = Texts(name="né", rack="r", data=b"\x00", nullable_data=b"", numbers=(1, -1), nullable_numbers=(2,))
INNER = Inner(topic_id=TOPIC_ID, partitions=(1, 2))
UUID_HEX = TOPIC_ID.hex


@pytest.mark.parametrize(
    ("record", "flexible", "encoded"),
    [
        (SCALARS, False, "fe fffd ffff 00000004 fffffffffffffffb 01" + UUID_HEX),
        (SCALARS, True, "fe fffd ffff 00000004 fffffffffffffffb 01" + UUID_HEX + "00"),
        (EMPTY, False, "0000 ffff 00000000 ffffffff 00000000 ffffffff"),
        (EMPTY, True, "01 00 01 00 01 00 00"),
        (
            FULL,
            False,
            "0003 6ec3a9 0001 72 00000001 00 00000000 00000002 00000001 ffffffff 00000001 00000002",
        ),
        (FULL, True, "04 6ec3a9 02 72 02 00 01 03 00000001 ffffffff 02 00000002 00"),
        (Outer(inner=INNER, inners=()), False, UUID_HEX + "00000002 0001 0002 00000000"),
        (
            Outer(inner=INNER, inners=(INNER,)),
            True,
            UUID_HEX + "03 0001 0002 00 02" + UUID_HEX + "03 0001 0002 00 00",
        ),
        (TaggedFields(plain=1), True, "01 00"),
        (TaggedFields(plain=1, far=2, near="x"), True, "01 02 03 02 0278 904e 08 0000000000000002"),
    ],
)
def test_a_record_has_kafkas_bytes_in_version_0(record: Any, flexible: bool, encoded: str) -> None:
    record_class: Any = record.__class__
    data = encode(record, 0, flexible=flexible)
    assert data.hex() == bytes.fromhex(encoded).hex()
    assert decode(record_class, memoryview(data), 0, flexible=flexible) == record


def test_a_newer_field_is_written_only_in_versions_that_have_it() -> None:
    record = Versioned(first=1, second=5, third=3)
    assert encode(record, 1).hex() == "010300"
    assert encode(record, 2).hex() == "01050300"
    assert decode(Versioned, bytes.fromhex("010300"), 1) == record
    inner = Inner(topic_id=TOPIC_ID, partitions=(), since_one=9)
    outer = Outer(inner=inner, inners=(inner,))
    assert decode(Outer, encode(outer, 1), 1) == outer


def test_a_value_that_the_version_cannot_hold_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="version 1 has no second"):
        encode(Versioned(first=1, second=6, third=3), 1)
    with pytest.raises(ValueError, match="version 0 has no newer"):
        encode(TaggedFields(plain=1, newer=(1,)), 0)
    nothing: Any = None
    with pytest.raises(ValueError, match="cannot be null"):
        encode(replace(EMPTY, name=nothing), 0)


def test_unknown_tagged_fields_are_skipped() -> None:
    data = bytes.fromhex("07 03 01 02 aabb 03 02 0278 63 00")
    assert decode(TaggedFields, data, 0) == TaggedFields(plain=7, near="x")


def test_a_tagged_field_of_a_newer_version_is_unknown_to_an_older_one() -> None:
    data = encode(TaggedFields(plain=7, newer=(1, 2)), 1)
    assert decode(TaggedFields, data, 1).newer == (1, 2)
    assert decode(TaggedFields, data, 0).newer == ()


@pytest.mark.parametrize("flexible", [False, True])
@pytest.mark.parametrize("record", [SCALARS, FULL, Outer(inner=INNER, inners=(INNER,))])
def test_bytes_that_are_cut_short_or_too_long_are_refused(record: Any, flexible: bool) -> None:
    record_class: Any = record.__class__
    data = encode(record, 0, flexible=flexible)
    for size_bytes in range(len(data)):
        with pytest.raises(RecordFormatError):
            decode(record_class, data[:size_bytes], 0, flexible=flexible)
    with pytest.raises(RecordFormatError, match="ends at"):
        decode(record_class, data + b"\x00", 0, flexible=flexible)


@pytest.mark.parametrize(
    ("record_class", "data"),
    [
        (Texts, "00 00 01 00 01 00 00"),  # null in a field that is not nullable
        (Texts, "02 ff 00 01 00 01 00 00"),  # not UTF-8
        (Texts, "01 00 01 00 ffffffff0f 00 00"),  # an array with more elements than bytes
        (TaggedFields, "01 01 03 03 0278 00"),  # a tagged field shorter than its size
        (TaggedFields, "01 01 03 09 0278"),  # a tagged field longer than the data
    ],
)
def test_malformed_bytes_are_refused(record_class: type[Any], data: str) -> None:
    with pytest.raises(RecordFormatError):
        decode(record_class, bytes.fromhex(data), 0)
