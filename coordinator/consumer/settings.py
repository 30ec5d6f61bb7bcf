"""The settings of consumer groups, under Kafka's names. The caller reads the configuration."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from barnabas.coordinator.assignor import range as range_assignor
from barnabas.coordinator.assignor import uniform

REGEX_REFRESH_PAUSE_MS = 10_000
"""The least time between two resolutions of regular expressions, as in Kafka."""


class MigrationPolicy(StrEnum):
    """Which groups with members may change their protocol."""

    DISABLED = "disabled"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def allows_upgrade(self) -> bool:
        return self in (MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def allows_downgrade(self) -> bool:
        return self in (MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    """Broker-wide limits."""

    max_size: int = 2**31 - 1
    """`group.consumer.max.size`: members of a group; one more is refused with GROUP_MAX_SIZE_REACHED."""
    max_groups: int = 10_000
    """`group.consumer.max.groups` (Kafka has none): groups of this coordinator; one more is refused with
    GROUP_MAX_SIZE_REACHED.
    """
    assignors: tuple[str, ...] = (uniform.NAME, range_assignor.NAME)
    """`group.consumer.assignors`: the assignors that members may choose; the first one if no member chooses.
    """
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    """`group.consumer.migration.policy`"""
    regex_refresh_interval_ms: int = 600_000
    """`group.consumer.regex.refresh.interval.ms`: how often regular expressions are resolved again without a
    new topic.
    """
    classic_max_size: int = 2**31 - 1
    """`group.max.size`: members of a group that becomes a classic one."""
