"""Bugs in the delays before retries that the broker does not have, planted like those in `planted_bugs`."""

from __future__ import annotations

from barnabas.protocol.delivery_state import Condition, Due, StateRange
from barnabas.share.partition import recorded
from barnabas.share.partition.waits import DELAY_MS_MAX
from barnabas.share.partition.window import Window
from tests.simulation.planting import planted

_end_waits = Window.end_waits


@planted(Window, "end_waits")
def waits_that_end_together(self: Window, wall_ms: int) -> bool:
    """When one record is due, all waiting records of the partition become available."""
    is_any_due = self.waits.first_due_ms is not None and wall_ms >= self.waits.first_due_ms
    return _end_waits(self, wall_ms + DELAY_MS_MAX if is_any_due else wall_ms)


@planted(recorded, "condition_at_load")
def due_times_forgotten_by_a_restart(loaded: StateRange, *_: int) -> Condition | None:
    """A restarted leader does not look at the due times in the recorded state."""
    return None if isinstance(loaded.condition, Due) else loaded.condition
