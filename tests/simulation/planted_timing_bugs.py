"""Bugs in the delays and the expiry of records that the broker does not have, planted like those in
`planted_bugs`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

from barnabas.share.leader import group_reader, timed_reads
from barnabas.share.leader.timed_reads import Gate
from barnabas.share.sweep.sweep import Sweep
from tests.simulation import simulation
from tests.simulation.planted_seeds import FOR_EVER_SECONDS
from tests.simulation.planting import planted

# pyright: reportPrivateUsage=false


@planted(group_reader, "batches_before")
def reading_to_the_end_of_the_batch(bounds: Sequence[tuple[int, int]], gate: Gate) -> list[tuple[int, int]]:
    """The records of a batch behind the first one that is not due are delivered with those before it."""
    return [one for one in bounds if one[0] < gate.offset]


@planted(timed_reads._Look, "_is_expired")
def records_that_expire_early(look: timed_reads._Look, timestamp_ms: int) -> bool:
    """The time to live is half of the setting."""
    ttl_ms = look._timing.ttl_ms
    return bool(ttl_ms) and 0 <= timestamp_ms <= look._wall_ms - ttl_ms // 2


@contextmanager
def expiry_without_a_sweep() -> Generator[None]:
    """Records expire in fetches only."""

    def expire(sweep: Sweep, now_ms: int) -> None:
        sweep._next_at_ms = now_ms + 1_000

    with (
        patch.object(Sweep, "expire", expire),
        patch.object(simulation, "REST_SECONDS_MAX", FOR_EVER_SECONDS),
    ):
        yield
