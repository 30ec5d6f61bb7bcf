"""Bugs in the order of keys beside acknowledgements in transactions that the broker does not have, planted
like those in `planted_bugs`.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from barnabas.protocol.delivery_state import PendingAcknowledgement
from barnabas.share.partition import acquisition, ordered_acquisition
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.in_flight import ACQUIRED, InFlight
from barnabas.share.partition.key_order import follows, order_of
from barnabas.share.partition.limits import ShareLimits
from barnabas.share.partition.share_partition import SharePartition

# pyright: reportPrivateUsage=false

_decide_pending = SharePartition.decide_pending
_follows_order = ordered_acquisition.follows_order


@contextmanager
def key_freed_by_a_pending_acknowledgement() -> Generator[None]:
    """A key is free when its record is acknowledged in a transaction, not when that is committed."""

    def decide(self: SharePartition, *arguments: Any) -> Decision:
        decision = _decide_pending(self, *arguments)
        order = self._in_flight.key_order
        for target in decision.targets:
            if order is not None:
                order.finish(target.run.first_offset, target.run.last_offset, was_held=True)
        return decision

    with patch.object(SharePartition, "decide_pending", decide):
        yield


@contextmanager
def order_begun_beside_pending_records() -> Generator[None]:
    """An order that begins, as after a restart, does not wait for records that wait for transactions."""

    def follows_order(in_flight: InFlight, limits: ShareLimits) -> bool:
        runs = [run for batch in in_flight.batches for run in batch.runs if run.state is ACQUIRED]
        if not follows(in_flight.key_order, limits) and all(
            isinstance(run.condition, PendingAcknowledgement) for run in runs
        ):
            in_flight.key_order = order_of(in_flight.spso, limits)
        return _follows_order(in_flight, limits)

    with patch.object(acquisition, "follows_order", follows_order):
        yield
