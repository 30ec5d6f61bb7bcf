"""The bytes of the batches from which a member has acquired records, without an order of keys."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from barnabas.storage.reading.reader import BatchSlice, BatchSpan


def pieces_between(slice_: BatchSlice, first_offset: int, last_offset: int) -> list[memoryview]:
    """The batches that overlap the range; usually all, because a read is no longer than the ranges to
    acquire.
    """
    batches = slice_.batches
    if batches[0].last_offset >= first_offset and batches[-1].base_offset <= last_offset:
        if len(batches) == 1:
            return [slice_.data[batches[0].start : batches[0].end]]
        return slice_.pieces()
    first = bisect_left(batches, first_offset, key=_last_offset)
    return slice_.pieces(first, bisect_right(batches, last_offset, key=_base_offset) - first)


def _base_offset(span: BatchSpan) -> int:
    return span.base_offset


def _last_offset(span: BatchSpan) -> int:
    return span.last_offset
