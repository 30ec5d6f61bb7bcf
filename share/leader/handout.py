"""What one fetch gets from a share-partition: the batches that were read, and the ranges in them that the
member has acquired.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import itemgetter
from typing import Final, NamedTuple

from barnabas.protocol.extended.runs import Runs
from barnabas.protocol.tuples import maker
from barnabas.protocol.varint import Buffer
from barnabas.share.leader.delivered_batches import delivered_batches
from barnabas.share.leader.share_counts import PartitionCounts
from barnabas.storage.reading.log_slice import BatchSlice, BatchSpan


class Handout(NamedTuple):
    """The records for one fetch: whole producer batches, and the ranges that the member acquired. Empty with
    an error.
    """

    acquired: Sequence[tuple[int, int, int]]
    """Disjoint, ascending: first offset, last offset (inclusive), delivery count with this delivery."""
    buffers: list[Buffer]
    size_bytes: int
    record_count: int
    more_may_follow: bool = False
    """Whether the next fetch may get records immediately, although this one gets none: all that it found have
    been archived, or it has looked at as many as one fetch may.
    """
    runs: Runs | None = None
    """Which of these records are taken back together, if any."""
    error_code: int = 0
    error_message: str | None = None


NOTHING: Final = Handout((), [], 0, 0)
_new_handout = maker(Handout)
_first, _last = itemgetter(0), itemgetter(1)
"""The fields of an acquired range."""


def make_handout(
    acquired: Sequence[tuple[int, int, int]],
    read: list[BatchSlice],
    counts: PartitionCounts,
    *,
    is_scattered: bool,
    runs: Runs | None,
) -> Handout:
    """`acquired` has at least one range. `is_scattered`: records between the ranges may not be delivered."""
    buffers: list[Buffer] = []
    if is_scattered:
        buffers, undelivered_bytes = delivered_batches(read, acquired)
        counts.undelivered_bytes += undelivered_bytes
    else:
        for slice_ in read:
            if len(slice_.batches) == 1:
                (batch,) = slice_.batches
                if batch.base_offset <= acquired[-1][1] and acquired[0][0] <= batch.last_offset:
                    buffers.append(slice_.data[batch.start : batch.end])
            else:
                buffers += _pieces_between(slice_, acquired[0][0], acquired[-1][1])
    record_count = sum(map(_last, acquired)) - sum(map(_first, acquired)) + len(acquired)
    return _new_handout((acquired, buffers, sum(map(len, buffers)), record_count, False, runs, 0, None))


def _pieces_between(slice_: BatchSlice, first_offset: int, last_offset: int) -> list[memoryview]:
    """The whole batches that overlap the range; usually all, because a read is no longer than the ranges to
    acquire.
    """
    batches = slice_.batches
    if batches[0].last_offset >= first_offset and batches[-1].base_offset <= last_offset:
        return slice_.pieces()
    first = bisect_left(batches, first_offset, key=_last_offset)
    return slice_.pieces(first, bisect_right(batches, last_offset, key=_base_offset) - first)


def _base_offset(span: BatchSpan) -> int:
    return span.base_offset


def _last_offset(span: BatchSpan) -> int:
    return span.last_offset
