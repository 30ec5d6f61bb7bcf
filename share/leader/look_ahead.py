"""The look ahead of groups with priorities: before a fetch, the leader reads more records to choose from."""

from __future__ import annotations

from typing import Final

from barnabas.share.leader.group_reader import GroupReader
from barnabas.share.partition.acquisition import Acquisition, Demand
from barnabas.share.partition.share_partition import SharePartition

LOOK_AHEAD_BYTES_MAX: Final = 4 * 1024 * 1024
"""The bytes that one fetch reads ahead to find urgent records, at least one batch. The next fetch reads on.
"""


def look_ahead(
    core: SharePartition, reader: GroupReader, demand: Demand, upper_offset: int
) -> Acquisition | None:
    """Brings the records in flight that were read ahead, if the window has room; none is acquired. None if
    nothing was read. Raises StorageError or ApiError.
    """
    plan = core.plan_look_ahead(demand.limits)
    if not plan.reads:
        return None
    read = reader.read(
        plan,
        demand.limits,
        LOOK_AHEAD_BYTES_MAX,
        upper_offset,
        read_committed=demand.read_committed,
    )
    if not read.slices:
        return None
    return core.look_ahead(demand, read)
