"""Finding the aborted transactions that a committed reader has to pass over, by the segments' indexes."""

from __future__ import annotations

from barnabas.storage.format.transaction_index import AbortedTransaction
from barnabas.storage.segments.segments import Segments


def aborted_between(segments: Segments, first_offset: int, upper_offset: int) -> list[AbortedTransaction]:
    """Those with anything at offsets in [first_offset, upper_offset), by their markers' offsets. OSError,
    and RecordFormatError for an index that cannot be read.

    A marker may be in a later segment than the batches that it is about. The search ends with the first
    transaction when whose marker was written nothing below `upper_offset` was open any more.
    """
    found: list[AbortedTransaction] = []
    for segment in segments.from_offset(first_offset):
        if not segment.has_aborted:
            continue
        for aborted in segment.transaction_index.get().entries_from(first_offset):
            if aborted.first_offset < upper_offset:
                found.append(aborted)
            if aborted.last_stable_offset >= upper_offset:
                return found
    return found
