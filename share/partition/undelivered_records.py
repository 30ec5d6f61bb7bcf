"""Records that an acquisition finds, and that no member gets: compaction has removed them, their transaction
was aborted, or they are malformed. They are archived; the decision `gone` has that, to be recorded. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.delivery_state import Cause
from barnabas.share.partition.acquire_plan import AcquirePlan, FoundBatches
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.in_flight import InFlight
from barnabas.share.partition.in_flight_batch import ACQUIRED, AVAILABLE
from barnabas.share.partition.locks import archive
from barnabas.share.partition.producer_batches import ProducerBatches, first_reaching


def archive_gaps(in_flight: InFlight, gone: Decision, planned: AcquirePlan, batches: ProducerBatches) -> None:
    """Archives available records that a read from their offset on did not find: compaction took them."""
    for first_offset, _ in planned.reads:
        index = first_reaching(batches, first_offset)
        if index < len(batches) and batches[index][0] > first_offset:
            last_offset = in_flight.control_runs.previous_data_offset(batches[index][0] - 1)
            archive(in_flight, gone, first_offset, last_offset, AVAILABLE, Cause.GAP)


def archive_undelivered(
    in_flight: InFlight, gone: Decision, ranges: list[tuple[int, int, int]], found: FoundBatches
) -> list[tuple[int, int, int]]:
    """Archives the acquired records of aborted and of malformed batches; returns the remaining ranges."""
    if found.aborted:
        ranges = _archive_acquired(in_flight, gone, ranges, found.aborted, Cause.TRANSACTION_ABORTED)
    if found.unreadable:
        ranges = _archive_acquired(in_flight, gone, ranges, found.unreadable, Cause.GAP)
    return ranges


def _archive_acquired(
    in_flight: InFlight,
    gone: Decision,
    ranges: list[tuple[int, int, int]],
    gone_batches: Sequence[tuple[int, int]],
    cause: Cause,
) -> list[tuple[int, int, int]]:
    for base_offset, last_offset in gone_batches:
        remaining: list[tuple[int, int, int]] = []
        for first, last, delivery_count in ranges:
            low, high = max(first, base_offset), min(last, last_offset)
            if low > high:
                remaining.append((first, last, delivery_count))
                continue
            archive(in_flight, gone, low, high, ACQUIRED, cause)
            if first < low:
                remaining.append((first, low - 1, delivery_count))
            if high < last:
                remaining.append((high + 1, last, delivery_count))
        ranges = remaining
    return ranges
