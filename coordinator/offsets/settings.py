"""The settings of committed offsets, under Kafka's names. The caller reads the configuration."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetSettings:
    """Broker-wide limits."""

    metadata_bytes_max: int = 4_096
    """`offset.metadata.max.bytes`; longer metadata: OFFSET_METADATA_TOO_LARGE."""
    partition_ranges_max: int = 100_000
    """`offset.partition.ranges.max` (Kafka has none): the ranges beyond the committed offset of a partition,
    pending ones included. A commit beyond it is refused with INVALID_COMMIT_OFFSET_SIZE.
    """
    retention_ms: int = 7 * 24 * 60 * 60 * 1000
    """`offsets.retention.minutes`: how long offsets are kept after the group's last member left, or after the
    last commit.
    """
    retention_check_interval_ms: int = 600_000
    """`offsets.retention.check.interval.ms`: how often all offsets are checked for expiry."""
