"""The `.snapshot` file of a log in Kafka's format: the state of its idempotent producers (KIP-98).

    version i16 = 1, crc u32 (CRC-32C of all later bytes), count i32, then for each producer: producer id i64,
    producer epoch i16, last sequence i32, last offset i64, offset delta i32 (of the last batch), timestamp
    i64 (ms, of that batch), coordinator epoch i32, first offset of the open transaction i64 (-1 without one)

The file's name is an offset: the snapshot includes all records below it. The file has one batch for each
producer; the state in memory has five.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from struct import error as StructError  # noqa: N812  an exception's name
from typing import NamedTuple

from crc32c import crc32c

SNAPSHOT_SUFFIX = ".snapshot"

_VERSION = 1
_HEADER = Struct(">hI")
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")


class SnapshotCorrupt(ValueError):  # noqa: N818  named as the condition
    """The bytes are not a producer snapshot, or they are damaged."""


class ProducerSnapshotEntry(NamedTuple):
    """One producer, with the last sequence, last offset and offset span of its last batch.

    Without a batch the sequence and the offset are -1.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int
    coordinator_epoch: int
    transaction_first_offset: int


def encode_snapshot(entries: Sequence[ProducerSnapshotEntry]) -> bytes:
    """The file's content."""
    body = b"".join((_COUNT.pack(len(entries)), *(_ENTRY.pack(*entry) for entry in entries)))
    return _HEADER.pack(_VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes) -> list[ProducerSnapshotEntry]:
    """The entries in a snapshot of this broker or Kafka; raises SnapshotCorrupt."""
    try:
        version, crc = _HEADER.unpack_from(data)
        (count,) = _COUNT.unpack_from(data, _HEADER.size)
    except StructError as error:
        raise SnapshotCorrupt("The snapshot is cut short.") from error
    body = memoryview(data)[_HEADER.size :]
    if version != _VERSION:
        raise SnapshotCorrupt(f"The snapshot has the version {version}, not {_VERSION}.")
    if crc32c(body) != crc or len(body) != _COUNT.size + count * _ENTRY.size:
        raise SnapshotCorrupt("The snapshot's bytes don't match its checksum.")
    return [ProducerSnapshotEntry._make(fields) for fields in _ENTRY.iter_unpack(body[_COUNT.size :])]
