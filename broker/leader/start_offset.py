"""Where a share group begins in a partition that it has never read (KIP-932, `share.auto.offset.reset`).

Decided at the first fetch and recorded at once, so that a crash doesn't move it. Isolation plays no part in
it.
"""

from __future__ import annotations

from barnabas.broker.config.share_settings import AutoOffsetReset
from barnabas.storage.log import PartitionLog


def resolve_start_offset(log: PartitionLog, reset: AutoOffsetReset, wall_ms: int) -> int | None:
    """The first offset to read under the group's policy; None while no record is as young as `by_duration`
    asks for.
    """
    if reset.strategy == "earliest":
        return log.log_start_offset
    if reset.strategy == "latest":
        return log.high_watermark
    found = log.offset_for_timestamp(wall_ms - reset.duration_ms)
    return None if found is None else found[1]
