"""The offsets whose retention is over (KIP-211). Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from barnabas.coordinator.offsets.committed_offset import CommittedOffset, OffsetKey
from barnabas.coordinator.offsets.committed_offsets import CommittedOffsets
from barnabas.protocol.classic_group_records import NO_TIMESTAMP


def expired_keys(
    group_id: str,
    offsets: CommittedOffsets,
    retained_since_ms: Callable[[str], int | None],
    wall_ms: int,
    retention_ms: int,
) -> Iterator[OffsetKey]:
    """A group's offsets to delete: their retention, counted from `OffsetRules.retained_since_ms` of the
    topic, is over, and no open transaction may replace them.
    """
    for topic_name, partitions in offsets.of_group(group_id).items():
        since_ms = retained_since_ms(topic_name)
        if since_ms is None:
            continue
        for partition, committed in partitions.items():
            if wall_ms < _expires_at_ms(committed, since_ms, retention_ms):
                continue
            key = OffsetKey(group_id, topic_name, partition)
            committed_last = offsets.individual.refreshed(key, committed)
            is_over = wall_ms >= _expires_at_ms(committed_last, since_ms, retention_ms)
            if is_over and not offsets.is_pending(key):
                yield key


def _expires_at_ms(committed: CommittedOffset, since_ms: int, retention_ms: int) -> int:
    if committed.expires_at_ms != NO_TIMESTAMP:
        return committed.expires_at_ms
    return (committed.committed_at_ms if since_ms == NO_TIMESTAMP else since_ms) + retention_ms
