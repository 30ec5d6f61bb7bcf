"""Bugs in the order of keys beside acknowledgements in transactions that the broker does not have, planted
like those in `planted_bugs`.
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol.delivery_state import PendingAcknowledgement
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.limits import ShareLimits
from barnabas.share.partition.share_partition import SharePartition
from barnabas.share.partition.window import ACQUIRED
from tests.simulation.planting import planted

# pyright: reportPrivateUsage=false

_decide_pending = SharePartition.decide_pending
_follows_order = SharePartition._follows_order


@planted(SharePartition, "decide_pending")
def key_freed_by_a_pending_acknowledgement(self: SharePartition, *arguments: Any) -> Decision:
    """A key is free when its record is acknowledged in a transaction, not when that is committed."""
    decision = _decide_pending(self, *arguments)
    order = self.window.keys
    for target in decision.targets:
        if order is not None:
            order.finish(target.run.first_offset, target.run.last_offset, was_held=True)
    return decision


@planted(SharePartition, "_follows_order")
def order_begun_beside_pending_records(self: SharePartition, limits: ShareLimits) -> bool:
    """An order that begins, as after a restart, does not wait for records that wait for transactions."""
    runs = [run for _, run in self.window.all_runs() if run.state is ACQUIRED]
    if not self._order.follows(limits) and all(
        isinstance(run.condition, PendingAcknowledgement) for run in runs
    ):
        self.begin_order(limits)
    return _follows_order(self, limits)
