"""The settings of committed offsets, under Kafka's names. The caller reads the configuration."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetSettings:
    """Broker-wide limits."""

    metadata_bytes_max: int = 4_096
    """`offset.metadata.max.bytes`; longer metadata: OFFSET_METADATA_TOO_LARGE."""
    retention_ms: int = 7 * 24 * 60 * 60 * 1000
    """`offsets.retention.minutes`: how long offsets are kept after the group's last member left, or after the
    last commit.
    """
    retention_check_interval_ms: int = 600_000
    """`offsets.retention.check.interval.ms`: how often all offsets are checked for expiry."""
