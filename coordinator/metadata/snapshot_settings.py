"""When metadata snapshots are taken and how much is kept, as the broker is configured. Pure."""

from typing import NamedTuple

_DAY_MS = 24 * 60 * 60 * 1000
_MIB = 1024 * 1024


class SnapshotSettings(NamedTuple):
    """Kafka's settings of its metadata log, and two of KIP-630 that Kafka has dropped since (marked so)."""

    record_bytes: int = 20 * _MIB
    """metadata.log.max.record.bytes.between.snapshots: so many bytes of records make a snapshot due."""
    interval_ms: int = 60 * 60 * 1000
    """metadata.log.max.snapshot.interval.ms: no record waits longer for its snapshot; 0 for no such limit."""
    cleanable_ratio: float = 0.5
    """metadata.snapshot.min.cleanable.ratio (KIP-630): see `SnapshotSchedule`."""
    start_lag_ms: int = 7 * _DAY_MS
    """metadata.start.offset.lag.time.max.ms (KIP-630): no follower is waited for longer."""
    retention_bytes: int = 100 * _MIB
    """metadata.max.retention.bytes: with more on the disk no follower is waited for; -1 for no limit."""
    retention_ms: int = 7 * _DAY_MS
    """metadata.max.retention.ms: as `start_lag_ms`, the lesser of the two holds; -1 for no limit."""

    @property
    def wait_ms(self) -> int:
        """How long after its last record was written a snapshot waits for followers at most."""
        return self.start_lag_ms if self.retention_ms < 0 else min(self.start_lag_ms, self.retention_ms)
