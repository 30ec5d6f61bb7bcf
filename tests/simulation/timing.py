"""The delays and the expiry of records in a run: the settings of the share groups, and the ages and delays
that the records may have.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

HEADER = "deliver.after.ms"
WITH_HEADER = 0.4
DELAYS = (b"0", b"150", b"600", b"2000", b"soon")
AGE_MS_MAX = 1_500


class TimingSettings(NamedTuple):
    """The part of a scenario that is about the times of records."""

    group_ids: tuple[str, ...] = ()
    """The share groups with these settings, from the beginning to the end of the run."""
    delay_ms: int = 0
    with_header: bool = False
    delayed_records_max: int = 10_000
    ttl_ms: int = 0
    is_deserted: bool = False
    """Whether the members of these groups leave before the last records arrive, which have to expire."""

    @property
    def values(self) -> dict[str, str]:
        """The settings by name."""
        return {
            "share.delivery.delay.ms": str(self.delay_ms),
            "share.delay.header": HEADER if self.with_header else "",
            "share.delayed.records.max": str(self.delayed_records_max),
            "share.record.ttl.ms": str(self.ttl_ms),
        }


NO_TIMING = TimingSettings()


def draw_timing(random: Random, group_ids: tuple[str, ...]) -> TimingSettings:
    """A quarter of the runs may have delays, or a time to live."""
    if random.random() >= 1 / 4:
        return NO_TIMING
    ttl_ms = random.choice((0, 1_000, 2_500))
    return TimingSettings(
        tuple(random.sample(group_ids, random.randint(1, len(group_ids)))),
        random.choice((0, 0, 300, 900)),
        random.random() < 0.6,
        random.choice((3, 30, 10_000)),
        ttl_ms,
        bool(ttl_ms) and random.random() < 0.5,
    )
