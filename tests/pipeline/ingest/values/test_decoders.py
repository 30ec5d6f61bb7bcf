"""Schema files of each kind: the column types they give, values that fit, and those that don't."""

import io
import json
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from barnabas.pipeline.decoding.arrow import pa
from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.ingest.values.decoder import Decoder, ValueMisfit
from barnabas.pipeline.ingest.values.decoding import decode_batch
from barnabas.pipeline.ingest.values.options import ValueOptions
from barnabas.pipeline.ingest.values.recipe import DecoderRecipe

fastavro: Any = import_module("fastavro")
"""By name, since its type information is incomplete."""

JSON_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "integer"},
        "price": {"type": "number", "minimum": 0},
        "at": {"type": "string", "format": "date-time"},
        "day": {"type": ["string", "null"], "format": "date"},
        "paid": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "who": {"$ref": "#/$defs/person"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "any": {},
    },
    "$defs": {
        "person": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "parent": {"$ref": "#/$defs/person"}},
        }
    },
}
AVRO_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
        {"name": "colour", "type": {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}},
        {"name": "uid", "type": {"type": "string", "logicalType": "uuid"}},
    ],
}
PROTO = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "parts.proto";
enum Colour { RED = 0; BLUE = 1; }
message Order {
  int64 id = 1;
  optional double price = 2;
  google.protobuf.Timestamp at = 3;
  repeated string tags = 4;
  map<string, uint32> counts = 5;
  Colour colour = 6;
  uint64 large = 7;
  google.protobuf.StringValue note = 8;
  Person who = 9;
}
"""
PARTS = 'syntax = "proto3"; package shop; message Person { string name = 1; }'


def decoder(path: Path, content: object, **options: Any) -> Decoder:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return DecoderRecipe.of(ValueOptions(schema_file=str(path), **options)).make()


def reasons(found: Decoder, *values: bytes | None) -> list[Any]:
    """Why values don't fit, None for those that do."""
    batch = pa.RecordBatch.from_pydict({"value": pa.array(values, pa.binary())})
    told: list[Any] = decode_batch(found, batch).column("reason").to_pylist()
    return told


def names_and_types(kind: Any) -> dict[str, str]:
    return {field.name: str(field.type) for field in kind}


def test_json_values_get_the_types_of_their_schema(tmp_path: Path) -> None:
    found = decoder(tmp_path / "order.json", JSON_SCHEMA)
    assert names_and_types(found.arrow_type) == {
        "id": "int64",
        "price": "double",
        "at": "timestamp[us, tz=UTC]",
        "day": "date32[day]",
        "paid": "bool",
        "tags": "list<item: string>",
        "counts": "map<string, int64>",
        "who": "struct<name: string, parent: string>",
        "note": "string",
        "any": "string",
    }
    value = {
        "id": 1.0,
        "price": 2,
        "at": "2026-01-02T03:04:05+01:00",
        "day": "2026-01-02",
        "tags": ["a"],
        "counts": {"x": 1},
        "who": {"name": "n", "parent": {"name": "p"}},
        "any": [1, "two"],
        "unknown": 1,
    }
    row = pa.array([found.decode(json.dumps(value).encode())], found.arrow_type).to_pylist()[0]
    assert row == {
        "id": 1,
        "price": 2.0,
        "at": datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC),
        "day": date(2026, 1, 2),
        "paid": None,
        "tags": ["a"],
        "counts": [("x", 1)],
        "who": {"name": "n", "parent": '{"name": "p"}'},
        "note": None,
        "any": '[1, "two"]',
    }


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"{", "it is no JSON"),
        (b"\xff", "it is no JSON"),
        (b"", "it is no JSON"),
        (b'{"id": NaN}', "NaN is no JSON number"),
        (b"[" * 100_000, "it is no JSON"),
        (b'{"price": 1}', '"id" is a required property'),
        (b'{"id": "one"}', "id: "),
        (b'{"id": 1, "price": -1}', "price: -1 is less than the minimum"),
        (b'{"id": 1, "at": "yesterday"}', "'yesterday': "),
        (b'{"id": 1, "at": "2026-01-02T03:04:05"}', "it has no offset"),
        (b'{"id": 1, "day": "2026-02-30"}', "'2026-02-30': "),
    ],
)
def test_json_values_that_do_not_fit_have_a_reason(tmp_path: Path, value: bytes, reason: str) -> None:
    with pytest.raises(ValueMisfit) as caught:
        decoder(tmp_path / "order.json", JSON_SCHEMA).decode(value)
    assert reason in str(caught.value)


def avro_value(**changed: Any) -> bytes:
    value = {
        "id": 7,
        "price": Decimal("1.25"),
        "at": datetime(2026, 1, 2, 3, 4, 5, 6000, UTC),
        "day": None,
        "tags": ["a", "b"],
        "counts": {"x": 1},
        "colour": "BLUE",
        "uid": "0f0f",
        **changed,
    }
    plain = json.loads(json.dumps(AVRO_SCHEMA).replace(', "logicalType": "uuid"', ""))
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(plain), value)
    return stream.getvalue()


def test_avro_values_get_the_types_of_their_schema(tmp_path: Path) -> None:
    found = decoder(tmp_path / "order.avsc", AVRO_SCHEMA)
    assert names_and_types(found.arrow_type) == {
        "id": "int64",
        "price": "decimal128(9, 2)",
        "at": "timestamp[us, tz=UTC]",
        "day": "date32[day]",
        "tags": "list<item: string>",
        "counts": "map<string, int32>",
        "colour": "string",
        "uid": "string",
    }
    row = pa.array([found.decode(avro_value(day=date(2026, 1, 2)))], found.arrow_type).to_pylist()[0]
    assert row["price"] == Decimal("1.25")
    assert row["at"] == datetime(2026, 1, 2, 3, 4, 5, 6000, UTC)
    assert (row["day"], row["counts"], row["colour"]) == (date(2026, 1, 2), [("x", 1)], "BLUE")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "it cannot be decoded: EOFError"),
        (avro_value()[:-3], "it cannot be decoded: EOFError"),
        (avro_value() + b"!", "1 bytes are left behind the Avro value"),
        (b"\xff" * 40, "it cannot be decoded: "),
    ],
)
def test_avro_values_that_do_not_fit_have_a_reason(tmp_path: Path, value: bytes, reason: str) -> None:
    assert reasons(decoder(tmp_path / "order.avsc", AVRO_SCHEMA), value)[0].startswith(reason)


@pytest.fixture
def proto(tmp_path: Path) -> Path:
    (tmp_path / "parts.proto").write_text(PARTS)
    path = tmp_path / "order.proto"
    path.write_text(PROTO)
    return path


ORDER = bytes.fromhex("0807") + bytes.fromhex("1a0408011002") + b"\x22\x01a" + b"\x2a\x05\x0a\x01x\x10\x03"
"""id 7, at 1.000000002 s, tags ["a"], counts {"x": 3}."""


def test_protobuf_values_get_the_types_of_their_file(proto: Path) -> None:
    found = DecoderRecipe.of(ValueOptions(schema_file=str(proto), message="shop.Order")).make()
    assert names_and_types(found.arrow_type) == {
        "id": "int64",
        "price": "double",
        "at": "timestamp[us, tz=UTC]",
        "tags": "list<item: string>",
        "counts": "map<string, int64>",
        "colour": "string",
        "large": "decimal128(20, 0)",
        "note": "string",
        "who": "struct<name: string>",
    }
    value = (
        ORDER + b"\x30\x01" + b"\x38" + b"\xff" * 9 + b"\x01" + b"\x42\x03\x0a\x01n" + b"\x4a\x03\x0a\x01p"
    )
    row = pa.array([found.decode(value)], found.arrow_type).to_pylist()[0]
    assert row == {
        "id": 7,
        "price": None,
        "at": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
        "tags": ["a"],
        "counts": [("x", 3)],
        "colour": "BLUE",
        "large": Decimal(2**64 - 1),
        "note": "n",
        "who": {"name": "p"},
    }


@pytest.mark.parametrize("value", [b"\x08", b"\x0a\xff", b"\xff\xff"])
def test_protobuf_values_that_do_not_fit_have_a_reason(proto: Path, value: bytes) -> None:
    found = DecoderRecipe.of(ValueOptions(schema_file=str(proto), message="shop.Order")).make()
    with pytest.raises(ValueMisfit, match="it is no such Protobuf message"):
        found.decode(value)


def test_a_descriptor_set_and_its_proto_file_give_the_same_type(proto: Path, tmp_path: Path) -> None:
    recipe = DecoderRecipe.of(ValueOptions(schema_file=str(proto)))
    compiled = tmp_path / "order.desc"
    compiled.write_bytes(recipe.schema)
    found = DecoderRecipe.of(ValueOptions(schema_file=str(compiled))).make()
    assert found.arrow_type == recipe.make().arrow_type, "its only message needs no name"


@pytest.mark.parametrize(
    ("kind", "head"), [("avro", b"\x00\x00\x00\x00\x2a"), ("protobuf", b"\x00\x00\x00\x00\x2a\x00")]
)
def test_confluents_header_is_passed_over(tmp_path: Path, proto: Path, kind: str, head: bytes) -> None:
    if kind == "avro":
        found, value = decoder(tmp_path / "o.avsc", AVRO_SCHEMA, framing="confluent"), avro_value()
    else:
        found = DecoderRecipe.of(ValueOptions(schema_file=str(proto), framing="confluent")).make()
        value = ORDER
    assert found.decode(head + value)["id"] == 7
    for wrong in (b"", b"\x00\x00", b"\x01" + head[1:] + value, value):
        with pytest.raises(ValueMisfit):
            found.decode(wrong)


def test_protobufs_message_indexes_are_passed_over(proto: Path) -> None:
    found = DecoderRecipe.of(ValueOptions(schema_file=str(proto), framing="confluent")).make()
    head = struct.pack(">bi", 0, 42)
    assert found.decode(head + b"\x04\x02\x80\x01" + ORDER)["id"] == 7, "two indexes, the second of two bytes"
    for wrong in (head, head + b"\x04", head + b"\xff\xff\x01", head + b"\x01"):
        with pytest.raises(ValueMisfit):
            found.decode(wrong)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "{", "schema_file: this is no JSON Schema"),
        ("a.json", {"type": "nothing"}, "schema_file: this is no JSON Schema"),
        ("a.json", {"$ref": "http://example.com/x"}, "schema_file: it refers to http://example.com/x"),
        ("a.avsc", "{", "schema_file: this is no Avro schema"),
        ("a.avsc", {"type": "record"}, "schema_file: this is no Avro schema"),
        ("a.avsc", ["int", "string"], "the value is a union of 2 types besides null"),
        ("a.avsc", "null", "schema_file: "),
        (
            "a.avsc",
            {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]},
            "the value.next contains itself, by N",
        ),
        ("a.proto", "message {", "schema_file: .*a.proto"),
        ("a.proto", 'syntax = "proto3"; message M { M next = 1; }', "message: M contains itself"),
        (
            "a.proto",
            'syntax = "proto3"; message A { int32 a = 1; } message B { int32 b = 1; }',
            "message: is needed, because the file defines A, B",
        ),
        ("a.desc", "nonsense", "schema_file: this is no set of Protobuf descriptors"),
        ("a.desc", "", "schema_file: this is no set of Protobuf descriptors"),
        ("a.xml", "<a/>", "schema_file: .* ends in none of"),
    ],
)
def test_schema_files_that_cannot_be_used_are_named(
    tmp_path: Path, name: str, content: object, message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        decoder(tmp_path / name, content)


def test_a_schema_file_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"schema_file: .*nosuch\.json: No such file"):
        DecoderRecipe.of(ValueOptions(schema_file=str(tmp_path / "nosuch.json")))


def test_a_message_has_to_be_in_the_file(proto: Path) -> None:
    with pytest.raises(OptionError, match="message: there is no message shop"):
        DecoderRecipe.of(ValueOptions(schema_file=str(proto), message="shop.Nosuch")).make()


def test_a_value_that_does_not_fit_disturbs_no_other(tmp_path: Path) -> None:
    found = decoder(tmp_path / "order.json", JSON_SCHEMA)
    values = [b'{"id": 1}', b"nonsense", None, b'{"id": %d}' % 2**70, b'{"id": 5}']
    batch = pa.RecordBatch.from_pydict({"offset": list(range(5)), "value": pa.array(values, pa.binary())})
    decoded = decode_batch(found, batch)
    assert decoded.schema.names == ["offset", "value", "__decoded", "reason"]
    ids = [one and one["id"] for one in decoded.column("__decoded").to_pylist()]
    assert ids == [1, None, None, None, 5]
    reasons = decoded.column("reason").to_pylist()
    assert [reason is None for reason in reasons] == [True, False, True, False, True]
    assert "has no place in the column" in reasons[3]
    assert decoded.column("value").to_pylist() == [None, values[1], None, values[3], None]


HOSTILE_JSON_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "number": {"type": "number"},
        "at": {"type": "string", "format": "date-time"},
        "any": {},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b'{"number": 1' + b"0" * 400 + b"}", "OverflowError: int too large to convert to float"),
        (rb'{"\ud800": 1}', r"UnicodeEncodeError: 'utf-8' codec can't encode character '\ud800'"),
        (rb'{"counts": {"\ud800": 1}}', "UnicodeEncodeError: "),
        (rb'{"any": "\ud800"}', "it has no place in the column: UnicodeEncodeError: "),
        (b'{"at": "0001-01-01T00:00:00+14:00"}', "a time is out of range"),
        (b'{"at": "9999-12-31T23:59:59-14:00"}', "a time is out of range"),
        (rb'{"at": "2026-01-02\ud80003:04:05"}', r"2026-01-02\ud80003:04:05 is no date-time"),
    ],
)
def test_a_json_value_that_no_column_can_hold_is_a_misfit(tmp_path: Path, value: bytes, reason: str) -> None:
    found = decoder(tmp_path / "hostile.json", HOSTILE_JSON_SCHEMA)
    fits, told, tombstone = reasons(found, b"{}", value, None)
    assert reason in told
    assert (fits, tombstone) == (None, None)


HOSTILE_PROTO = """
syntax = "proto3";
import "google/protobuf/struct.proto";
import "google/protobuf/any.proto";
message Hostile { google.protobuf.Value value = 1; google.protobuf.Any any = 2; }
"""


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"\x0a\x09\x11" + struct.pack("<d", float("nan")), "ValueError: Fail to serialize NaN"),
        (b"\x12\x05\x0a\x03x/T", "TypeError: Can not find message descriptor by type_url"),
    ],
)
def test_a_protobuf_value_that_has_no_json_text_is_a_misfit(
    tmp_path: Path, value: bytes, reason: str
) -> None:
    found = decoder(tmp_path / "hostile.proto", HOSTILE_PROTO)
    fits, told, tombstone = reasons(found, b"", value, None)
    assert told.startswith(f"it cannot be decoded: {reason}")
    assert (fits, tombstone) == (None, None)


class RaisingDecoder:
    """Raises the same for each value."""

    arrow_type = pa.int64()

    def __init__(self, error: Exception) -> None:
        self._error = error

    def decode(self, value: bytes) -> Any:
        raise self._error


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RuntimeError("deep\udc80 inside"), r"it cannot be decoded: RuntimeError: deep\udc80 inside"),
        (EOFError(), "it cannot be decoded: EOFError"),
        (ValueMisfit("it is\ud800 wrong"), r"it is\ud800 wrong"),
    ],
)
def test_any_error_of_a_decoder_is_a_misfit_of_its_record(error: Exception, reason: str) -> None:
    assert reasons(RaisingDecoder(error), b"x", None) == [reason, None]


def test_a_worker_without_memory_makes_no_misfit_of_a_record() -> None:
    with pytest.raises(MemoryError):
        reasons(RaisingDecoder(MemoryError()), b"x")


def test_a_recipe_goes_to_workers_without_the_file(tmp_path: Path) -> None:
    import pickle

    path = tmp_path / "order.json"
    path.write_text(json.dumps(JSON_SCHEMA))
    recipe = pickle.loads(pickle.dumps(DecoderRecipe.of(ValueOptions(schema_file=str(path)))))
    path.unlink()
    assert recipe.make().decode(b'{"id": 1}')["id"] == 1
