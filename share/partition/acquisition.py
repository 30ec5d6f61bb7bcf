"""Acquiring records: the choice of records for a fetch.

KIP-932 "In-flight records" and "Batching", KIP-1206 for the record limit, with Apache Kafka 4.3's throttling
of records near their delivery limit. First the plan names the reads, then the read batches show which records
exist. Reading the log is the caller's part. A group without an order of records acquires by offset
(`unordered_acquisition`), others by the order of their keys and priorities (`ordered_acquisition`).
"""

from __future__ import annotations

from barnabas.share.partition.acquire_plan import NOTHING_ACQUIRED, AcquirePlan, Acquisition, FoundBatches
from barnabas.share.partition.acquisition_builder import AcquireRequest
from barnabas.share.partition.in_flight import InFlight
from barnabas.share.partition.limits import AcquireMode, ShareLimits
from barnabas.share.partition.ordered_acquisition import acquire_in_order, follows_order, plan_in_order
from barnabas.share.partition.unordered_acquisition import acquire_by_offset, plan_by_offset


def plan(
    in_flight: InFlight, records_max: int, limits: ShareLimits, acquire_mode: AcquireMode
) -> AcquirePlan:
    """The reads for `records_max` records; empty if no record can be acquired now."""
    if records_max <= 0 or in_flight.spso < 0 or not follows_order(in_flight, limits):
        return AcquirePlan([], [])
    order = in_flight.key_order
    if order is None:
        return plan_by_offset(in_flight, records_max, limits, acquire_mode)
    return plan_in_order(in_flight, order, records_max, limits, acquire_mode)


def acquire(
    in_flight: InFlight, planned: AcquirePlan, request: AcquireRequest, found: FoundBatches
) -> Acquisition:
    """Acquires from the batches that were read. Those of aborted transactions, and those with malformed
    records, are archived instead of delivered, and so is a range without data.
    """
    if request.records_max <= 0 or not found.batches:
        return NOTHING_ACQUIRED
    order = in_flight.key_order
    if order is None:
        return acquire_by_offset(in_flight, planned, request, found)
    return acquire_in_order(in_flight, order, planned, request, found)
