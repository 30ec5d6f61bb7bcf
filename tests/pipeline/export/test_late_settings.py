"""The settings of a group that a restore sets last, because they would keep records from its own member."""

from barnabas.broker.config import tables
from barnabas.pipeline.export.group_restoring import LATE_SETTINGS

EARLY_SETTINGS_OF_OURS = {
    "individual.commit.order",
    "share.assignor.name",
    "share.dead.letter.copy.headers.enable",
    "share.dead.letter.on.failure",
    "share.delay.header",
    "share.delayed.records.max",
    "share.order.key.in.flight.max",
    "share.priority.overtaken.max",
    "share.priority.window.records",
    "share.record.limit.force",
    "share.retry.backoff.jitter",
    "share.retry.backoff.max.ms",
    "share.retry.backoff.multiplier",
}
"""Most of these have no effect without a late one. `LATE_SETTINGS` has the case of the delay header."""


def test_each_group_setting_of_ours_is_set_early_or_late() -> None:
    """A new setting belongs in one of the two: late, if it decides which records a member gets, or when."""
    ours = {setting.name for setting in tables.GROUP.values() if setting.ours}
    assert not EARLY_SETTINGS_OF_OURS & LATE_SETTINGS
    assert ours == EARLY_SETTINGS_OF_OURS | LATE_SETTINGS
