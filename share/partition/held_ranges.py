"""The records that a member still holds from one delivery (KIP-932, "Acquisition locks"). Pure."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.share.partition.in_flight import InFlight
from barnabas.share.partition.in_flight_batch import ACQUIRED

Range = tuple[int, int, int]
"""First offset, last offset (inclusive) and delivery count."""


def held_ranges(in_flight: InFlight, member_id: str, acquired: Sequence[Range]) -> list[Range]:
    """The parts of the acquired ranges that the member holds with the same delivery count, ascending.

    Records whose acknowledgement is being recorded are left out.
    """
    held: list[Range] = []
    for acquired_from, acquired_to, delivery_count in acquired:
        first_offset = max(acquired_from, in_flight.spso)
        last_offset = min(acquired_to, in_flight.speo - 1)
        if first_offset > last_offset:
            continue
        may_join = False
        for _, run in in_flight.runs_between(first_offset, last_offset):
            is_held = run.state is ACQUIRED and run.owner == member_id and not run.pending
            if not is_held or run.delivery_count != delivery_count:
                may_join = False
                continue
            first, last = max(run.first_offset, first_offset), min(run.last_offset, last_offset)
            if may_join:
                held[-1] = (held[-1][0], last, delivery_count)
            else:
                held.append((first, last, delivery_count))
            may_join = True
    return held
