"""Bugs in the delays before retries that the broker does not have, planted like those in `planted_bugs`."""

from __future__ import annotations

from barnabas.protocol.delivery_state import Condition, Due, StateRange
from barnabas.share.partition import restoring, share_partition, waits
from barnabas.share.partition.due_times import DELAY_MS_MAX
from barnabas.share.partition.in_flight import InFlight
from tests.simulation.planting import planted

_end_waits = waits.end_waits


@planted(share_partition, "end_waits")
def waits_that_end_together(in_flight: InFlight, now_ms: int) -> bool:
    """When one record is due, all waiting records of the partition become available."""
    due_ms = in_flight.wait_queue.first_due_ms
    is_any_due = due_ms is not None and in_flight.due_times.wall_ms(now_ms) >= due_ms
    return _end_waits(in_flight, now_ms + DELAY_MS_MAX if is_any_due else now_ms)


@planted(restoring, "condition_at_load")
def due_times_forgotten_by_a_restart(loaded: StateRange, *_: int) -> Condition | None:
    """A restarted leader does not look at the due times in the recorded state."""
    return None if isinstance(loaded.condition, Due) else loaded.condition
