"""The look ahead of groups with priorities: before a fetch, the leader reads more records to choose from."""

from __future__ import annotations

from typing import Final

from barnabas.share.leader.group_reader import GroupReader
from barnabas.share.leader.handout import FetchDemand
from barnabas.share.partition.acquire_plan import Acquisition
from barnabas.share.partition.share_partition import SharePartition

LOOK_AHEAD_BYTES_MAX: Final = 4 * 1024 * 1024
"""The bytes that one fetch reads ahead to find urgent records, at least one batch. The next fetch reads on.
"""


def look_ahead(core: SharePartition, reader: GroupReader, demand: FetchDemand) -> Acquisition | None:
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
        demand.upper_offset,
        read_committed=demand.read_committed,
    )
    if not read.slices:
        return None
    return core.look_ahead(
        read.batches,
        read.keys,
        demand.batch_size,
        demand.limits,
        aborted=read.aborted,
        timed=None if read.timed is None else read.timed.parts,
    )
