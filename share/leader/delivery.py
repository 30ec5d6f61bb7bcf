"""Makes the handout for a fetch of the batches that were read, and the ranges that the member acquired."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from barnabas.protocol.extended.runs import Runs
from barnabas.protocol.tuples import maker
from barnabas.protocol.varint import Buffer
from barnabas.share.leader.delivered_batches import delivered_batches
from barnabas.share.leader.handout import Handout
from barnabas.share.leader.share_counts import PartitionCounts
from barnabas.share.leader.whole_batches import pieces_between
from barnabas.storage.reading.reader import BatchSlice


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
            buffers += pieces_between(slice_, acquired[0][0], acquired[-1][1])
    record_count = sum(map(_last, acquired)) - sum(map(_first, acquired)) + len(acquired)
    return _new_handout((acquired, buffers, sum(map(len, buffers)), record_count, False, runs, 0, None))


_new_handout = maker(Handout)
_first, _last = itemgetter(0), itemgetter(1)
"""The fields of an acquired range."""
