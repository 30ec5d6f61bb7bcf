"""The module in Python, for installations without the native one: the same hashes, bytes and faults."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from barnabas.protocol.record_keys.shapes import NO_KEY, KeyHashes
from barnabas.protocol.record_walk import faults
from barnabas.protocol.record_walk.cursor import BytesCursor, RecordCursor, RecordFaultError
from barnabas.protocol.record_walk.shapes import unreadable
from barnabas.protocol.varint import Buffer

IS_NATIVE: Final = False

_SEED: Final = 0x9747B28C
_FACTOR: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


def key_hash(key: bytes) -> int:
    """MurmurHash2 with Kafka's seed, without its sign: 31 bits (`Utils.toPositive(Utils.murmur2(key))`)."""
    length = len(key)
    value = _SEED ^ length
    whole = length & ~3
    for (word,) in struct.iter_unpack("<I", key[:whole]):
        mixed = word * _FACTOR & _MASK
        mixed = (mixed ^ mixed >> 24) * _FACTOR & _MASK
        value = value * _FACTOR & _MASK ^ mixed
    if length > whole:
        value = (value ^ int.from_bytes(key[whole:], "little")) * _FACTOR & _MASK
    value = (value ^ value >> 13) * _FACTOR & _MASK
    return (value ^ value >> 15) & 0x7FFFFFFF


def key_hashes(body: Buffer, record_count: int) -> KeyHashes:
    """The hashes of all records of a batch's uncompressed body. RecordFormatError for a malformed record."""
    data = memoryview(body).cast("B")
    cursor = BytesCursor(data, 0, len(data))
    found = KeyHashes([], [])
    for index in range(record_count):
        try:
            record = RecordCursor(cursor)
            key = record.nullable()
        except RecordFaultError as error:
            raise unreadable(index, record_count, error.fault) from None
        found.offset_deltas.append(record.offset_delta)
        found.hashes.append(NO_KEY if key is None else key_hash(key))
    if cursor.left:
        raise unreadable(record_count, record_count, faults.BYTES_BEHIND_BATCH)
    return found


def kept_records(body: Buffer, record_count: int, offset_deltas: Sequence[int]) -> bytes:
    """The bytes of the records with these offset deltas, which ascend and each have a record.

    A batch header with that number of records, and the same base offset and base timestamp, fits them.
    RecordFormatError for a malformed record, and for a delta without a record.
    """
    data = memoryview(body).cast("B")
    cursor = BytesCursor(data, 0, len(data))
    kept: list[Buffer] = []
    wanted = 0
    for index in range(record_count):
        if wanted == len(offset_deltas):
            break
        start = cursor.position
        try:
            record = RecordCursor(cursor)
        except RecordFaultError as error:
            raise unreadable(index, record_count, error.fault) from None
        if record.offset_delta == offset_deltas[wanted]:
            kept.append(data[start : record.end])
            wanted += 1
    if wanted < len(offset_deltas):
        raise unreadable(record_count, record_count, faults.RECORD_MISSING)
    return b"".join(kept)
