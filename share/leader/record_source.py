"""The records that a share-partition delivers, as its leader reads them: a log of this node, or anything that
has the same offsets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from barnabas.storage.format.control_runs import ControlRuns
from barnabas.storage.format.transaction_index import AbortedTransaction
from barnabas.storage.reading.log_slice import BatchSlice
from barnabas.storage.topic_partition import TopicPartition


class RecordSource(Protocol):
    """Batches from an offset on, and the bounds of what can be read. `PartitionLog` is one."""

    @property
    def topic_partition(self) -> TopicPartition: ...

    @property
    def control_runs(self) -> ControlRuns:
        """The offsets that are not records: holes in what is delivered."""
        ...

    @property
    def log_start_offset(self) -> int: ...

    @property
    def high_watermark(self) -> int:
        """The exclusive end of the records that may be delivered."""
        ...

    @property
    def last_stable_offset(self) -> int:
        """The exclusive end of the records whose transactions have ended."""
        ...

    @property
    def opened_end_offset(self) -> int:
        """Batches from here on were checked when they arrived (`unreadable_batches`)."""
        ...

    def read_batches(
        self,
        offset: int,
        *,
        records_max: int,
        bytes_max: int,
        upper_offset: int | None = None,
        at_least_one: bool = True,
    ) -> BatchSlice:
        """The batches with `records_max` records from `offset` on, below `upper_offset` (exclusive); fewer if
        `bytes_max` is reached, or at any boundary of the source. `at_least_one` allows the first batch more
        than `bytes_max`. Raises ApiError OFFSET_OUT_OF_RANGE, StorageError.
        """
        ...

    def aborted_transactions(self, first_offset: int, upper_offset: int) -> Sequence[AbortedTransaction]:
        """Those that overlap [first_offset, upper_offset). Raises StorageError."""
        ...
