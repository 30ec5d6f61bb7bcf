"""Malformed batches, with their errors."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.record_batch import encode_record
from barnabas.protocol.varint import zigzag_varint
from tests.pipeline.decoding.batches import of_offsets

FIRST = of_offsets(1, 2)
BAD = of_offsets(7)


def changed(position: int, *values: int) -> bytes:
    """`BAD` with these bytes at `position`."""
    return BAD[:position] + bytes(values) + BAD[position + len(values) :]


def record(*parts: bytes) -> bytes:
    """A record's fields behind its length: attributes, deltas of 0, and `parts`."""
    body = b"\0\0\0" + b"".join(parts)
    return zigzag_varint(len(body)) + body


HEADERS: dict[str, tuple[bytes, str, int | None]] = {
    "an older format": (changed(16, 1), "has message format version 1; only version 2 is read", None),
    "an unknown format": (changed(16, 0xFF), "has message format version -1; only version 2 is read", None),
    "no length": (changed(8, 0, 0, 0, 48), "states a length of 48 bytes", None),
    "a negative length": (changed(8, 255, 255, 255, 255), "states a length of -1 bytes", None),
    "a text": (b"once upon a time, there was", "has message format version 44; only version 2 is read", None),
    "zeros": (bytes(200), "has message format version 0; only version 2 is read", None),
    "another checksum": (changed(17, 0, 0, 0, 9), "has the checksum {crc} and states 00000009", len(BAD)),
}
"""By name, a batch, its error, and its size if the length in its header is right."""


def malformed(what: str, index: int = 0) -> str:
    return f"is malformed: its record {index} {what}"


CUT = malformed("has a field that doesn't fit")
TOO_LONG = malformed("has an integer that is too long for its field")
ASTRAY = "has an offset that is out of order"
TOO_FAR = malformed("has a time that is too far away")
GOOD = encode_record(0, 0, b"k", b"v")

BODIES: dict[str, tuple[bytes, dict[str, Any], str]] = {
    "no records at all": (b"", {}, "states 1 records in 0 bytes"),
    "too many records": (
        GOOD,
        {"record_count": 2**31 - 1},
        f"states {2**31 - 1} records in {len(GOOD)} bytes",
    ),
    "fewer than none": (GOOD, {"record_count": -1}, f"states -1 records in {len(GOOD)} bytes"),
    "a record less": (GOOD * 2, {}, f"has {len(GOOD)} bytes behind its last record"),
    "bytes where no record is": (b"1234567", {"record_count": 0}, "has 7 bytes behind its last record"),
    "a length beyond the body": (b"\x7f" + GOOD[1:], {}, CUT),
    "a negative length": (b"\x01" + GOOD[1:], {}, CUT),
    "a length of 0": (b"\x00" + GOOD[1:], {}, CUT),
    "a length of 1": (b"\x02" + GOOD[1:], {}, CUT),
    "a length that goes on": (
        encode_record(0, 0, b"k", b"v" * 9) + b"\xff" * 4,
        {"record_count": 2},
        malformed("has a field that doesn't fit", 1),
    ),
    "a length of 35 bits": (b"\xff" * 5 + b"\0" * 9, {}, TOO_LONG),
    "a length of 33 bits": (b"\xff" * 4 + b"\x10" + b"\0" * 9, {}, TOO_LONG),
    "a time of 65 bits": (b"\x1c\0" + b"\xff" * 9 + b"\x02" + b"\0" * 4, {}, TOO_LONG),
    "an offset of 33 bits": (b"\x14\0\0" + b"\xff" * 4 + b"\x10" + b"\1\1\0", {}, TOO_LONG),
    "a key beyond the record": (record(b"\x7f", b"\x01" * 4), {}, CUT),
    "a key of 2 ** 31 - 1 bytes": (record(b"\xfe" + b"\xff" * 3 + b"\x0f", b"\1\0"), {}, CUT),
    "a value beyond the record": (record(b"\x01", b"\x10", b"1234567"), {}, CUT),
    "no value": (record(b"\x06", b"123"), {}, CUT),
    "no header count": (record(b"\x01", b"\x04", b"12"), {}, CUT),
    "fewer headers than none": (record(b"\x01\x01", b"\x01", b"\x01"), {}, CUT),
    "more headers than bytes": (record(b"\x01\x01", b"\x06", b"\0\0"), {}, CUT),
    "a header without a value": (record(b"\x01\x01", b"\x02", b"\x02n"), {}, CUT),
    "a header without a name": (
        record(b"\x01\x01", b"\x02", b"\x01\x01"),
        {},
        malformed("has a header without a name"),
    ),
    "bytes behind the headers": (
        record(b"\x01\x01", b"\x00", b"x"),
        {},
        malformed("has bytes after its end"),
    ),
    "an offset twice": (GOOD * 2, {"record_count": 2, "last_offset_delta": 5}, malformed(ASTRAY, 1)),
    "an offset below the batch's": (encode_record(-1, 0, b"k", b"v"), {}, malformed(ASTRAY)),
    "an offset above the batch's": (
        encode_record(4, 0, b"k", b"v"),
        {"last_offset_delta": 3},
        malformed(ASTRAY),
    ),
    "offsets that descend": (
        encode_record(1, 0, b"k", b"v") + GOOD,
        {"record_count": 2, "last_offset_delta": 5},
        malformed(ASTRAY, 1),
    ),
    "a negative last offset": (
        GOOD,
        {"last_offset_delta": -1},
        "has impossible offsets: its last offset delta is -1",
    ),
    "a negative offset": (
        GOOD,
        {"base_offset": -5},
        "has impossible offsets: its last offset delta is 0",
    ),
    "offsets beyond 64 bits": (
        GOOD,
        {"base_offset": 2**63 - 4, "last_offset_delta": 3},
        "has impossible offsets: its last offset delta is 3",
    ),
    "a time beyond 64 bits": (encode_record(0, 1, b"k", b"v"), {"timestamp_ms": 2**63 - 1}, TOO_FAR),
    "a time below 64 bits": (encode_record(0, -1, b"k", b"v"), {"timestamp_ms": -(2**63)}, TOO_FAR),
    "microseconds beyond 64 bits": (GOOD, {"timestamp_ms": 2**63 // 1000 + 1}, TOO_FAR),
    "microseconds below 64 bits": (GOOD, {"timestamp_ms": -(2**63 // 1000) - 1}, TOO_FAR),
    "an unknown codec": (GOOD, {"attributes": 5}, "has the unknown codec 5"),
}
"""By name, the records of a batch, the changes to its header, and its error."""
