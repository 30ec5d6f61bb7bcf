"""Starts of share groups in partitions that hold no record yet (decision 20).

While a partition's log end offset is 0, `earliest` and `latest` both mean offset 0. That decision must
survive a restart, but not as a control record in the partition: it would take offset 0 from the first data
record. So the group's own records in `__consumer_offsets` carry it. Starts that are decided in one pass of
the loop go into one record of each group.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from functools import partial

from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.runtime.completion import Completion


class ZeroStarts:
    """Gathers the starts of one pass of the loop."""

    def __init__(self, record: Callable[[str, Collection[TopicIdPartition]], Completion[None]]) -> None:
        """`record` writes the starts of one group."""
        self._record = record
        self._gathered: dict[str, tuple[list[TopicIdPartition], Completion[None]]] = {}

    def add(self, key: SharePartitionKey) -> Completion[None]:
        """Have it recorded that the group begins at offset 0 in this partition."""
        if not self._gathered:
            asyncio.get_running_loop().call_soon(self._record_gathered)
        partitions, recorded = self._gathered.setdefault(key.group_id, ([], Completion()))
        partitions.append(key.topic_id_partition)
        return recorded

    def _record_gathered(self) -> None:
        gathered, self._gathered = self._gathered, {}
        for group_id, (partitions, recorded) in gathered.items():
            recorded.end_with(partial(self._record, group_id, partitions))
