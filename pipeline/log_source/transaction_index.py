"""The `.txnindex` of a segment in Kafka's format (KIP-98): transactions with their abort marker in it.

An entry of 34 bytes, big endian: version i16 = 0, producer id i64, first offset i64, last offset i64 (the
marker's), last stable offset i64. Apache Kafka writes it together with the marker, Barnabas at a flush.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

VERSION_MAX = 0
_ENTRY = Struct(">hqqq8x")


class AbortedTransaction(NamedTuple):
    """Offsets are inclusive; the last one is the marker's."""

    producer_id: int
    first_offset: int
    last_offset: int


def decode_transaction_index(data: bytes) -> Iterator[AbortedTransaction]:
    """The entries. ValueError for a newer version, or an entry that is cut short."""
    if len(data) % _ENTRY.size:
        raise ValueError(f"its {len(data)} bytes are not entries of {_ENTRY.size} bytes")
    for version, producer_id, first_offset, last_offset in _ENTRY.iter_unpack(data):
        if version > VERSION_MAX:
            raise ValueError(f"it has the version {version}; up to {VERSION_MAX} is read")
        yield AbortedTransaction(producer_id, first_offset, last_offset)
