"""The backlog of one share-partition: the records that are not final, for metrics."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.storage.log.partition_log import PartitionLog


class Backlog(NamedTuple):
    """The backlog now."""

    group_id: str
    log: PartitionLog
    start_offset: int
    """All records below it are final."""
    lag: int
    """The number of records that are not final."""
