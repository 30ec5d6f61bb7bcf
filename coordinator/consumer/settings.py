"""The values that steer consumer groups, under Kafka's names; they come from outside."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from barnabas.coordinator.assignor import range as range_assignor
from barnabas.coordinator.assignor import uniform

REGEX_REFRESH_PAUSE_MS = 10_000
"""How long regular expressions rest at least until they are resolved again, as in Kafka."""


class MigrationPolicy(StrEnum):
    """Which groups with members may go from one protocol to the other."""

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
    """`group.consumer.max.groups` (Kafka has none): groups of this coordinator; the one that would be created
    beyond it is refused with GROUP_MAX_SIZE_REACHED."""
    assignors: tuple[str, ...] = (uniform.NAME, range_assignor.NAME)
    """`group.consumer.assignors`: those that members may ask for; the first one where nobody does."""
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    """`group.consumer.migration.policy`"""
    regex_refresh_interval_ms: int = 600_000
    """`group.consumer.regex.refresh.interval.ms`: how often regular expressions are resolved again though no
    topic has come."""
    classic_max_size: int = 2**31 - 1
    """`group.max.size`: members of a group that is to become a classic one."""
