"""Which batches that a share group read hold nothing for its members: the markers of transactions, and
batches that compaction has emptied, which stay for their producer's sake.

Share state is not among them, since reads leave it out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from barnabas.protocol.record_batch import read_header
from barnabas.storage.log.partition_log import BatchSlice


def without_data(read: Sequence[BatchSlice]) -> Callable[[int], bool]:
    """Tells of a batch, by its index in all that was read, whether it holds no data.

    It looks at a header when it is asked, since few are asked for.
    """

    def has_no_data(index: int) -> bool:
        for slice_ in read:
            if index < len(slice_.batches):
                header = read_header(slice_.data, slice_.batches[index].start)
                return header.is_control or header.record_count == 0
            index -= len(slice_.batches)
        raise IndexError(index)

    return has_no_data
