"""The settings of the transaction coordinator, under Kafka's names. The caller reads the configuration."""

from dataclasses import dataclass

MARKER_RETRY_MS = 100
"""Pause before markers are written again to partitions whose logs refused them, or could not be opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSettings:
    """Broker-wide limits."""

    partition_count: int = 50
    """Of the topic; `transaction.state.log.num.partitions` when it is created."""
    max_timeout_ms: int = 900_000
    """`transaction.max.timeout.ms`: beyond it producers are refused with INVALID_TRANSACTION_TIMEOUT."""
    timeout_check_interval_ms: int = 10_000
    """`transaction.abort.timed.out.transaction.cleanup.interval.ms`"""
    id_expiration_ms: int = 7 * 24 * 60 * 60 * 1000
    """`transactional.id.expiration.ms`: how long an unused id is kept."""
    id_expiration_check_interval_ms: int = 3_600_000
    """`transaction.remove.expired.transaction.cleanup.interval.ms`"""
    max_ids: int = 100_000
    """`transaction.max.transactional.ids` (Kafka has none): one more new id is refused with POLICY_VIOLATION,
    which no producer retries.
    """
    max_queued_operations: int = 10_000
    """Operations that may wait for one partition's append (Kafka has no such bound); one more is refused with
    COORDINATOR_NOT_AVAILABLE.
    """
