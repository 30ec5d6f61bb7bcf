"""Bugs in the delays before retries that the broker does not have, planted like those in `planted_bugs`."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from unittest.mock import patch

from barnabas.protocol.delivery_state import Condition, Due, StateRange
from barnabas.share.partition import restoring, share_partition, waits
from barnabas.share.partition.due_times import DELAY_MS_MAX
from barnabas.share.partition.in_flight import InFlight

_end_waits = waits.end_waits


@contextmanager
def waits_that_end_together() -> Generator[None]:
    """When one record is due, all waiting records of the partition become available."""

    def end_waits(in_flight: InFlight, now_ms: int) -> bool:
        due_ms = in_flight.wait_queue.first_due_ms
        is_any_due = due_ms is not None and in_flight.due_times.wall_ms(now_ms) >= due_ms
        return _end_waits(in_flight, now_ms + DELAY_MS_MAX if is_any_due else now_ms)

    with patch.object(share_partition, "end_waits", end_waits):
        yield


@contextmanager
def waits_forgotten_by_a_restart() -> Generator[None]:
    """A restarted leader does not look at the due times in the recorded state."""

    def condition_at_load(loaded: StateRange, *_: int) -> Condition | None:
        return None if isinstance(loaded.condition, Due) else loaded.condition

    with patch.object(restoring, "condition_at_load", condition_at_load):
        yield
