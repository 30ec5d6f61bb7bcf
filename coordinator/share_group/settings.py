"""The values that steer the group coordinator. They come from outside: nothing here reads a configuration
file."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupSettings:
    """Broker-wide limits, under Kafka's names where Kafka has them."""

    max_size: int = 200
    """`group.share.max.size`: members of a group; one more is refused with GROUP_MAX_SIZE_REACHED."""
    max_groups: int = 1_000
    """`group.share.max.groups` (Kafka has none): share groups of this coordinator; the one that would be
    created beyond it is refused with GROUP_MAX_SIZE_REACHED and a message that names the setting."""
    initialize_retry_interval_ms: int = 30_000
    """`group.share.initialize.retry.interval.ms`: pause before a partition whose state could not be made is
    tried again."""
    empty_retention_ms: int = -1
    """`group.share.empty.retention.ms` (Kafka has none): a group that is empty for longer is deleted with its
    state; -1 for never."""
    max_queued_operations: int = 10_000
    """Operations that may wait for one partition's append (Kafka has no such bound); beyond it:
    COORDINATOR_NOT_AVAILABLE."""


class GroupConfigs(Protocol):
    """The configuration of each share or consumer group (resource type GROUP), read anew at every use since
    it may change at any time."""

    def session_timeout_ms(self, group_id: str) -> int:
        """`share.session.timeout.ms`, `consumer.session.timeout.ms`"""
        ...

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """`share.heartbeat.interval.ms`, `consumer.heartbeat.interval.ms`"""
        ...

    def assignment_interval_ms(self, group_id: str) -> int:
        """`share.assignment.interval.ms`, `consumer.assignment.interval.ms`"""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedGroupConfigs:
    """The same values for every group: Kafka's defaults, for a broker without group overrides."""

    session_timeout: int = 45_000
    heartbeat_interval: int = 5_000
    assignment_interval: int = 1_000

    def session_timeout_ms(self, group_id: str) -> int:
        return self.session_timeout

    def heartbeat_interval_ms(self, group_id: str) -> int:
        return self.heartbeat_interval

    def assignment_interval_ms(self, group_id: str) -> int:
        return self.assignment_interval
