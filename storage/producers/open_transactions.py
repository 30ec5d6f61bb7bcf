"""The open transactions of one log, the oldest first. They bound its last stable offset (KIP-98).

A producer has at most one open transaction. It begins with the producer's first transactional batch and ends
with its marker, for any epochs of the two. Pure.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from operator import itemgetter
from typing import NamedTuple

from barnabas.storage.format.transaction_index import AbortedTransaction


class TransactionBegun(NamedTuple):
    """A producer's transaction begins in the log, with the batch at `first_offset`."""

    producer_id: int
    first_offset: int


class TransactionEnded(NamedTuple):
    """It ends with the marker at `last_offset`."""

    producer_id: int
    last_offset: int
    is_aborted: bool


TransactionStep = TransactionBegun | TransactionEnded


class OpenTransactions:
    """The first offset of each open transaction, by producer id. Steps must come in the order of the log."""

    __slots__ = ("_first_offsets",)

    def __init__(self, first_offsets: Iterable[tuple[int, int]] = ()) -> None:
        """`first_offsets` are (producer id, first offset) in any order."""
        self._first_offsets = OrderedDict(sorted(first_offsets, key=itemgetter(1)))

    def __len__(self) -> int:
        return len(self._first_offsets)

    @property
    def first_offset(self) -> int | None:
        """The first offset of the oldest transaction; None without any."""
        return next(iter(self._first_offsets.values()), None)

    def all(self) -> list[tuple[int, int]]:
        """(producer id, first offset) of each, the oldest first."""
        return list(self._first_offsets.items())

    def take(self, step: TransactionStep) -> AbortedTransaction | None:
        """Notes the start or end of a transaction; returns the index entry of an aborted one."""
        if isinstance(step, TransactionBegun):
            assert step.producer_id not in self._first_offsets, step
            self._first_offsets[step.producer_id] = step.first_offset
            return None
        first_offset = self._first_offsets.pop(step.producer_id)
        if not step.is_aborted:
            return None
        oldest_open = self.first_offset
        stable_offset = step.last_offset + 1 if oldest_open is None else oldest_open
        return AbortedTransaction(step.producer_id, first_offset, step.last_offset, stable_offset)
