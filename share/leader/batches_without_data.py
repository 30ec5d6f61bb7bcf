"""Batches in a share group's reads without data for its members: the markers of transactions, and batches
that compaction has emptied and that stay for the state of their producer.

Share state is not among them, because reads leave it out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from barnabas.protocol.record_batch import has_data
from barnabas.storage.log.partition_log import BatchSlice


def without_data(read: Sequence[BatchSlice]) -> Callable[[int], bool]:
    """Whether a batch holds no data, by its index among the batches that were read.

    It reads a header only when it is called, because few batches are checked.
    """

    def has_no_data(index: int) -> bool:
        for slice_ in read:
            if index < len(slice_.batches):
                return not has_data(slice_.data, slice_.batches[index].start)
            index -= len(slice_.batches)
        raise IndexError(index)

    return has_no_data
