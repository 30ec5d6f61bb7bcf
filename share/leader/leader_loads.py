"""The loads of share-partitions, as their leaders know them: for the assignor `load`."""

from __future__ import annotations

from barnabas.coordinator.share_group.interfaces import PartitionLoad
from barnabas.protocol.identity import SharePartitionKey
from barnabas.share.leader.share_partitions import SharePartitions


class LeaderLoads:
    """Implements `PartitionLoads` over the leaders in memory. It loads none and keeps none from going."""

    def __init__(self, share_partitions: SharePartitions) -> None:
        self._share_partitions = share_partitions

    def load_of(self, key: SharePartitionKey, before_offset: int | None) -> PartitionLoad | None:
        """See `PartitionLoads.load_of`."""
        leader = self._share_partitions.in_memory(key)
        if leader is None or not leader.core.is_initialised:
            return None
        end_offset = leader.log.high_watermark
        unfinished = leader.core.lag(end_offset if before_offset is None else min(before_offset, end_offset))
        return PartitionLoad(unfinished, end_offset)
