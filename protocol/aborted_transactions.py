"""The batches of aborted transactions (KIP-98), which a committed reader leaves out.

A Fetch response names the first offset of each aborted transaction in it; the ABORT marker among its batches
ends it. A segment's `.txnindex` names both offsets. A producer has one transaction at a time, so an offset
can only belong to the last transaction that begins at or before it.
"""

from __future__ import annotations

import struct
from bisect import bisect_right, insort
from collections.abc import Iterable
from typing import Final

from barnabas.protocol.control_record import ControlType
from barnabas.protocol.record_walk import record_spans
from barnabas.protocol.varint import RecordFormatError

_OPEN: Final = 2**63
"""Stands for a last offset that is not known yet."""
_MARKER_KEY: Final = struct.Struct(">hh")


class AbortedTransactions:
    """Aborted transactions of one partition. Callers ask about batches in the order of the log."""

    def __init__(self, transactions: Iterable[tuple[int, int, int]]) -> None:
        self._by_producer: dict[int, list[list[int]]] = {}
        for producer_id, first_offset, last_offset in transactions:
            insort(self._by_producer.setdefault(producer_id, []), [first_offset, last_offset])

    @classmethod
    def from_fetch(cls, transactions: Iterable[tuple[int, int]]) -> AbortedTransactions:
        """From (producer_id, first_offset) of a Fetch response's `aborted_transactions`."""
        return cls((producer_id, first_offset, _OPEN) for producer_id, first_offset in transactions)

    @classmethod
    def from_index(cls, transactions: Iterable[tuple[int, int, int]]) -> AbortedTransactions:
        """From (producer_id, first_offset, last_offset) of `.txnindex` entries; the last is the marker's."""
        return cls(transactions)

    def covers(self, producer_id: int, offset: int) -> bool:
        """Whether the producer's transactional batch at `offset` was aborted."""
        found = self._begun(producer_id, offset)
        return found is not None and offset <= found[1]

    def see_marker(self, producer_id: int, offset: int, body: bytes) -> None:
        """Reads the uncompressed records of a control batch: an ABORT marker ends the open transaction.

        Raises RecordFormatError if they hold no control record.
        """
        span = next(record_spans(body, 1), None) if body else None
        if span is None or span.key is None or len(span.key) < _MARKER_KEY.size:
            raise RecordFormatError("It has no control record.")
        found = self._begun(producer_id, offset)
        if _MARKER_KEY.unpack_from(span.key)[1] == ControlType.ABORT and found and found[1] == _OPEN:
            found[1] = offset

    def _begun(self, producer_id: int, offset: int) -> list[int] | None:
        """[first_offset, last_offset] of the producer's last transaction that begins by `offset`."""
        begun = self._by_producer.get(producer_id, [])
        index = bisect_right(begun, [offset, _OPEN])
        return begun[index - 1] if index else None
