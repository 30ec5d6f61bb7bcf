"""The settings of metadata snapshots and of the metadata log's retention. Pure."""

from typing import NamedTuple

_DAY_MS = 24 * 60 * 60 * 1000
_MIB = 1024 * 1024


class SnapshotSettings(NamedTuple):
    """Kafka's settings of its metadata log, and two of KIP-630 that Kafka has dropped since (marked so)."""

    record_bytes: int = 20 * _MIB
    """metadata.log.max.record.bytes.between.snapshots: bytes of records that make a snapshot due."""
    interval_ms: int = 60 * 60 * 1000
    """metadata.log.max.snapshot.interval.ms: the longest time that a record waits for a snapshot; 0 for no
    limit.
    """
    cleanable_ratio: float = 0.5
    """metadata.snapshot.min.cleanable.ratio (KIP-630): see `SnapshotSchedule`."""
    start_lag_ms: int = 7 * _DAY_MS
    """metadata.start.offset.lag.time.max.ms (KIP-630): the longest wait for a follower."""
    retention_bytes: int = 100 * _MIB
    """metadata.max.retention.bytes: with more on the disk the log does not wait for followers; -1 for no
    limit.
    """
    retention_ms: int = 7 * _DAY_MS
    """metadata.max.retention.ms: works as `start_lag_ms`; the lesser of the two applies; -1 for no limit."""

    @property
    def wait_ms(self) -> int:
        """The longest time after its last record that a snapshot waits for followers."""
        return self.start_lag_ms if self.retention_ms < 0 else min(self.start_lag_ms, self.retention_ms)
