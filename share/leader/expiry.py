"""The archiving of records that are past their time to live (`share.record.ttl.ms`), without a fetch.

It goes over the records that no member holds, and over the new ones behind them, and ends at the first batch
in which no record has expired. Timestamps usually ascend; older records behind such a batch are found when it
expires itself, or when a member fetches.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from barnabas.protocol.delivery_state import Cause
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.share.leader.timed_reads import TimedRead
from barnabas.share.partition.acquisition import AcquirePlan, PlannedRead
from barnabas.share.partition.limits import ShareLimits

STEP_RECORDS_MAX: Final = 1_000
STEP_BYTES_MAX: Final = 1024 * 1024
"""The records and the bytes that one step reads, so that others can run between two steps."""


class ExpiryStep(NamedTuple):
    """The result of a step."""

    next_offset: int | None
    """Where the next step begins; None if no more records expire at present."""
    earliest_ms: int | None
    """The earliest timestamp of the records that the step met, and that have not expired; None if it met
    none.
    """


DONE: Final = ExpiryStep(None, None)


def expire_some(
    leader: SharePartitionLeader, limits: ShareLimits, first_offset: int, *, read_committed: bool
) -> ExpiryStep:
    """Archive records from `first_offset` on that have expired. Raises StorageError or ApiError.

    With dead letters, the records on their way to letters occupy the in-flight window, so only as many expire
    at a time as have room in it.
    """
    first_offset = leader.core.next_unheld_offset(first_offset)
    upper_offset = leader.upper_offset(read_committed=read_committed)
    records_max = STEP_RECORDS_MAX
    if limits.letter_place is not None and first_offset >= leader.core.speo:
        records_max = min(records_max, limits.record_locks_max - leader.core.window_count)
    if first_offset >= upper_offset or records_max <= 0:
        return DONE
    plan = AcquirePlan()
    plan.reads.append(PlannedRead(first_offset, records_max, upper_offset - 1))
    read = leader.reader.read(plan, limits, STEP_BYTES_MAX, upper_offset, read_committed=read_committed)
    timed = read.timed_read
    if timed is None or not read.spans:
        return DONE
    until = _expired_until(timed)
    batches = [batch for batch in read.spans if batch.base_offset <= until]
    if not batches:
        return ExpiryStep(None, timed.earliest_ms)
    end = batches[-1].last_offset
    leader.admit(batches, [part for part in timed.parts if part.first_offset <= end])
    is_over = timed.gate is not None or len(batches) < len(read.spans)
    return ExpiryStep(None if is_over else end + 1, timed.earliest_ms)


def _expired_until(timed: TimedRead) -> int:
    """The last offset that is archived; -1 if no record has expired."""
    return max((part.last_offset for part in timed.parts if isinstance(part.fate, Cause)), default=-1)
