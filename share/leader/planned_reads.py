"""The reads of a share-partition's log for one plan."""

from __future__ import annotations

from barnabas.share.leader.record_source import RecordSource
from barnabas.share.partition.acquisition import UNBOUNDED_OFFSET, AcquirePlan, Demand
from barnabas.share.partition.limits import AcquireMode, ShareLimits
from barnabas.share.partition.share_partition import SharePartition
from barnabas.storage.errors import CorruptBatch
from barnabas.storage.reading.reader import BatchSlice


def chosen_batches(
    source: RecordSource,
    core: SharePartition,
    plan: AcquirePlan,
    limits: ShareLimits,
    bytes_max: int,
    upper_offset: int,
) -> tuple[AcquirePlan, list[BatchSlice]]:
    """The plan and its batches, for a plan of records that priorities have chosen. Raises StorageError or
    ApiError.

    If the bytes do not suffice for all of these records, or a batch is damaged, the plan is another one, for
    as many records as were read: so the most urgent ones are read, and not the first ones.
    """
    read = planned_batches(source, plan, bytes_max, upper_offset)
    while plan.chosen:
        count = plan.chosen_count(read[-1].batches[-1].last_offset) if read else 0
        if not count or count == plan.chosen_count():
            break
        plan = core.plan(Demand("", count, bytes_max, 0, AcquireMode.BATCH_OPTIMIZED, limits, 0))
        read = planned_batches(source, plan, bytes_max, upper_offset)
    return plan, read


def planned_batches(
    source: RecordSource, plan: AcquirePlan, bytes_max: int, upper_offset: int
) -> list[BatchSlice]:
    """The batches of the plan's reads below `upper_offset` (exclusive): at most `bytes_max`, or one batch.
    Raises StorageError or ApiError.

    A read of available records goes on in the next segment. No read follows one that stays incomplete: it
    would bring records without those before them.
    """
    slices: list[BatchSlice] = []
    bytes_left = bytes_max
    read_until = -1
    for first_offset, planned_count, last_offset in plan.reads:
        start, records_max = first_offset, planned_count
        if read_until > first_offset:
            start = read_until
            if last_offset != UNBOUNDED_OFFSET:
                records_max = source.control_runs.data_count(start, last_offset)
        while start <= last_offset:
            if bytes_left <= 0 or start >= upper_offset:
                return slices
            try:
                found = source.read_batches(
                    start,
                    records_max=records_max,
                    bytes_max=bytes_left,
                    upper_offset=upper_offset,
                    at_least_one=not slices,
                )
            except CorruptBatch:
                if not slices:
                    raise
                return slices
            if not found.batches:
                return slices
            slices.append(found)
            if last_offset == UNBOUNDED_OFFSET:
                return slices  # New records are the last ones, and the next fetch reads on.
            bytes_left -= sum(span.end - span.start for span in found.batches)
            start = read_until = found.batches[-1].last_offset + 1
            records_max = source.control_runs.data_count(start, last_offset)
    return slices
