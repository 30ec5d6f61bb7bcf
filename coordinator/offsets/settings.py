"""The values that steer committed offsets, under Kafka's names; they come from outside."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetSettings:
    """Broker-wide limits."""

    metadata_bytes_max: int = 4_096
    """`offset.metadata.max.bytes`; longer metadata: OFFSET_METADATA_TOO_LARGE."""
    retention_ms: int = 7 * 24 * 60 * 60 * 1000
    """`offsets.retention.minutes`: how long offsets outlive their group's last member, or last commit."""
    retention_check_interval_ms: int = 600_000
    """`offsets.retention.check.interval.ms`: how often offsets are looked at for that."""
