"""The settings of share groups. The caller reads the configuration."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupSettings:
    """Broker-wide limits, under Kafka's names where Kafka has them."""

    max_size: int = 200
    """`group.share.max.size`: members of a group; one more is refused with GROUP_MAX_SIZE_REACHED."""
    max_groups: int = 10_000
    """`group.share.max.groups` (Kafka has none): share groups of this coordinator; one more is refused with
    GROUP_MAX_SIZE_REACHED and a message that names the setting.
    """
    initialize_retry_interval_ms: int = 30_000
    """`group.share.initialize.retry.interval.ms`: pause before the state of a partition is created again
    after a failure.
    """
    empty_retention_ms: int = -1
    """`group.share.empty.retention.ms` (Kafka has none): a group that is empty for longer is deleted with its
    state; -1 for never."""
    max_queued_operations: int = 10_000
    """Operations that may wait for one partition's append (Kafka has no such bound); one more is refused with
    COORDINATOR_NOT_AVAILABLE.
    """
