"""The `.txnindex` of a segment in Kafka's format (KIP-98): the transactions with abort markers in the
segment.

An entry of 34 bytes, big endian: version i16 = 0, producer id i64, first offset i64, last offset i64 (the
marker's), last stable offset i64 (after the marker). Entries ascend by last offset, and so do their last
stable offsets. A segment without aborted transactions has no such file. Transactions without data in the log
have no entry.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import NamedTuple

from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.format.index_bytes import entries_bytes

ENTRY_BYTES = 34
_VERSION = 0
_ENTRY = Struct(">hqqqq")


class AbortedTransaction(NamedTuple):
    """One entry. Offsets are inclusive, except `last_stable_offset`; the last offset is the marker's."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """The index in memory, as columns. `append` returns the bytes of the new entry for the file."""

    __slots__ = ("_columns", "_last_offsets")

    def __init__(self, data: bytes = b"") -> None:
        """Loads the whole entries in `data`; raises RecordFormatError for an unknown version."""
        self._columns = tuple(array("q") for _ in AbortedTransaction._fields)
        self._last_offsets = self._columns[AbortedTransaction._fields.index("last_offset")]
        for version, *fields in _ENTRY.iter_unpack(data[: entries_bytes(data, ENTRY_BYTES)]):
            if version != _VERSION:
                raise RecordFormatError(f"A transaction index has the version {version}, not {_VERSION}.")
            self._push(fields)

    def __len__(self) -> int:
        return len(self._last_offsets)

    def __getitem__(self, slot: int) -> AbortedTransaction:
        return AbortedTransaction._make(column[slot] for column in self._columns)

    def append(self, entry: AbortedTransaction) -> bytes:
        """Adds the transaction with the newest abort marker."""
        assert not self._last_offsets or self._last_offsets[-1] < entry.last_offset, entry
        self._push(entry)
        return _ENTRY.pack(_VERSION, *entry)

    def entries_from(self, offset: int) -> Iterator[AbortedTransaction]:
        """The transactions whose markers are at or above `offset`, ascending."""
        return map(self.__getitem__, range(bisect_left(self._last_offsets, offset), len(self)))

    def truncate_to(self, offset: int) -> None:
        """Forgets the transactions whose markers are at or above `offset`."""
        slot = bisect_left(self._last_offsets, offset)
        for column in self._columns:
            del column[slot:]

    def is_sane(self) -> bool:
        """Whether the entries are possible: valid ids, and offsets in the right order."""
        before_last, before_stable = -1, -1
        for producer_id, first_offset, last_offset, last_stable_offset in zip(*self._columns, strict=True):
            if not (
                producer_id >= 0
                and 0 <= first_offset <= last_offset
                and before_last < last_offset
                and before_stable <= last_stable_offset <= last_offset + 1
            ):
                return False
            before_last, before_stable = last_offset, last_stable_offset
        return True

    def _push(self, fields: Iterable[int]) -> None:
        for column, field in zip(self._columns, fields, strict=True):
            column.append(field)
