"""Batches in a share group's reads that belong to aborted transactions (KIP-932, share.isolation.level)."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.record_batch import read_header
from barnabas.share.leader.record_source import RecordSource
from barnabas.storage.format.transaction_index import AbortedTransaction
from barnabas.storage.reading.log_slice import BatchSlice


def aborted_batches(source: RecordSource, read: Sequence[BatchSlice]) -> list[tuple[int, int]]:
    """(base offset, last offset) of each data batch whose transaction was aborted, in the order of the read.

    Markers are not included. Raises StorageError.
    """
    aborted: list[tuple[int, int]] = []
    for slice_ in read:
        first_offset, last_offset = slice_.batches[0].base_offset, slice_.batches[-1].last_offset
        transactions = source.aborted_transactions(first_offset, last_offset + 1)
        if transactions:
            aborted += _batches_of(slice_, transactions)
    return aborted


def _batches_of(slice_: BatchSlice, transactions: Sequence[AbortedTransaction]) -> list[tuple[int, int]]:
    by_producer: dict[int, list[AbortedTransaction]] = {}
    for transaction in transactions:
        by_producer.setdefault(transaction.producer_id, []).append(transaction)
    batches: list[tuple[int, int]] = []
    for span in slice_.batches:
        header = read_header(slice_.data, span.start)
        if header.is_transactional and not header.is_control:
            ranges = by_producer.get(header.producer_id, ())
            if any(aborted.first_offset <= span.base_offset <= aborted.last_offset for aborted in ranges):
                batches.append((span.base_offset, span.last_offset))
    return batches
