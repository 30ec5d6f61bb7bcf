"""Finds, in the segments' indexes, the aborted transactions that readers of committed records must skip."""

from __future__ import annotations

from barnabas.storage.format.transaction_index import AbortedTransaction
from barnabas.storage.segments.segments import Segments


def aborted_between(segments: Segments, first_offset: int, upper_offset: int) -> list[AbortedTransaction]:
    """The aborted transactions that overlap [first_offset, upper_offset), in the order of their markers.

    A marker may be in a later segment than its batches. The search ends at the first marker whose last stable
    offset is `upper_offset` or more: no transaction below that was open then. Raises OSError, and
    RecordFormatError for an unreadable index.
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
