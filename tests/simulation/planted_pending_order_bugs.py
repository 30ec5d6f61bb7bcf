"""Bugs in the order of keys beside acknowledgements in transactions that the broker does not have, planted
like those in `planted_bugs`.
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol.delivery_state import PendingAcknowledgement
from barnabas.share.partition import acquisition, ordered_acquisition
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.in_flight import InFlight
from barnabas.share.partition.in_flight_batch import ACQUIRED
from barnabas.share.partition.key_order import follows, order_of
from barnabas.share.partition.limits import ShareLimits
from barnabas.share.partition.share_partition import SharePartition
from tests.simulation.planting import planted

# pyright: reportPrivateUsage=false

_decide_pending = SharePartition.decide_pending
_follows_order = ordered_acquisition.follows_order


@planted(SharePartition, "decide_pending")
def key_freed_by_a_pending_acknowledgement(self: SharePartition, *arguments: Any) -> Decision:
    """A key is free when its record is acknowledged in a transaction, not when that is committed."""
    decision = _decide_pending(self, *arguments)
    order = self._in_flight.key_order
    for target in decision.targets:
        if order is not None:
            order.finish(target.run.first_offset, target.run.last_offset, was_held=True)
    return decision


@planted(acquisition, "follows_order")
def order_begun_beside_pending_records(in_flight: InFlight, limits: ShareLimits) -> bool:
    """An order that begins, as after a restart, does not wait for records that wait for transactions."""
    runs = [run for batch in in_flight.batches for run in batch.runs if run.state is ACQUIRED]
    if not follows(in_flight.key_order, limits) and all(
        isinstance(run.condition, PendingAcknowledgement) for run in runs
    ):
        in_flight.key_order = order_of(in_flight.spso, limits)
    return _follows_order(in_flight, limits)
