"""Held records that are taken back, because a record before them of the same key is delivered again.

With `share.order.key.in.flight.max` above 1, or in a batch that is delivered alone, a member holds several
records of one key. When one of them becomes available, those behind it do as well, without losing a delivery.
So nothing has to be recorded for them: an acquired record is recorded as available with one delivery less.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from barnabas.protocol.committed_ranges import merged
from barnabas.protocol.extended.runs import RunKind, Runs
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.in_flight import InFlight
from barnabas.share.partition.in_flight_batch import ACQUIRED, AVAILABLE, InFlightBatch, InFlightRun
from barnabas.share.partition.key_order import KeyOrder
from barnabas.share.partition.limits import ShareLimits

Span = tuple[int, int]


def runs_of(order: KeyOrder | None, limits: ShareLimits) -> Runs | None:
    """Which held records are taken back together; None if each is held alone."""
    if order is None or not _has_runs(order):
        return None
    kind = RunKind.KEYS if order.alone is None else RunKind.ALL
    return Runs(kind, limits.delivery_count_max)


def overtaken(in_flight: InFlight, released: Iterable[Span]) -> list[Span]:
    """The held records behind the released ones of their keys, which may be among them. Both ends of each
    range are inclusive.

    A record whose acknowledgement is being recorded, or waits for a transaction, is not taken back. A
    released record that is gone from the log takes none back.
    """
    order = in_flight.key_order
    if order is None or not _has_runs(order):
        return []
    found: list[Span] = []
    for first_offset, last_offset in released:
        if last_offset < in_flight.spso:
            continue
        if order.alone is not None and order.alone[0] <= last_offset and first_offset <= order.alone[1]:
            found.append((max(first_offset, order.alone[0]) + 1, order.alone[1]))
        for offset in range(first_offset, last_offset + 1):
            found += ((behind, behind) for behind in order.records_behind(offset))
    return [
        held
        for first_offset, last_offset in merged(found)
        for held in _held(in_flight, first_offset, last_offset)
    ]


def left_behind(in_flight: InFlight, unchanged: Iterable[Span]) -> list[Span]:
    """Held records whose acknowledgement, or whose loss with an earlier record, could not be recorded, and
    before which a record of their key has become available meanwhile.
    """
    order = in_flight.key_order
    if order is None or not _has_runs(order):
        return []
    available: list[Span] = []
    for first_offset, last_offset in unchanged:
        if order.alone is not None and order.alone[0] <= first_offset <= order.alone[1]:
            runs = in_flight.runs_between(order.alone[0], last_offset)
            available += ((run.first_offset, run.last_offset) for _, run in runs if run.state is AVAILABLE)
        for offset in range(first_offset, last_offset + 1):
            available += ((earlier, earlier) for earlier in order.available_before(offset))
    return overtaken(in_flight, available)


def made_available(decision: Decision) -> list[Span]:
    """The records that become available when the decision is recorded."""
    runs = [target.run for target in decision.targets if target.state is AVAILABLE]
    runs += (run for _, run in decision.taken_back)
    return [(run.first_offset, run.last_offset) for run in runs]


def take_back(in_flight: InFlight, taken_back: Iterable[Span]) -> None:
    """These held records become available immediately."""
    for _, run in isolated(in_flight, taken_back):
        give_back(in_flight, run)


def isolated(in_flight: InFlight, ranges: Iterable[Span]) -> list[tuple[InFlightBatch, InFlightRun]]:
    """The ranges, each inside of one run, as runs of their own."""
    runs: list[tuple[InFlightBatch, InFlightRun]] = []
    for first_offset, last_offset in ranges:
        batch = in_flight.batches[in_flight.batch_index(first_offset)]
        boundary = in_flight.boundary(first_offset)
        runs.append((batch, batch.isolate(batch.run_index(first_offset), boundary, last_offset)))
    return runs


def give_back(in_flight: InFlight, run: InFlightRun) -> None:
    """A held run becomes available, without its last delivery."""
    run.delivery_count -= 1
    in_flight.free(run, AVAILABLE)


def _has_runs(order: KeyOrder) -> bool:
    return order.run_max > 1 or order.alone is not None


def _held(in_flight: InFlight, first_offset: int, last_offset: int) -> Iterator[Span]:
    """The held parts of a range, each inside of one run."""
    control_runs = in_flight.control_runs
    for _, run in in_flight.runs_between(first_offset, last_offset):
        if run.state is ACQUIRED and not run.pending and run.condition is None:
            first = control_runs.next_data_offset(max(run.first_offset, first_offset))
            last = control_runs.previous_data_offset(min(run.last_offset, last_offset))
            if first <= last:
                yield first, last
