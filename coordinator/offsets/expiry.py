"""The offsets whose retention is over (KIP-211). Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from barnabas.coordinator.offsets.committed_offset import CommittedOffset, OffsetKey
from barnabas.coordinator.offsets.committed_offsets import CommittedOffsets
from barnabas.coordinator.offsets.interfaces import Retained
from barnabas.protocol.classic_group_records import NO_TIMESTAMP
from barnabas.runtime.moment import Moment


def expired_keys(
    group_id: str,
    offsets: CommittedOffsets,
    retained_since_ms: Callable[[str], int | Retained],
    moment: Moment,
    retention_ms: int,
) -> Iterator[OffsetKey]:
    """A group's offsets to delete: their retention, counted from `OffsetRules.retained_since_ms` of the
    topic, is over, and no open transaction may replace them.
    """
    for topic_name, partitions in offsets.of_group(group_id).items():
        since_ms = retained_since_ms(topic_name)
        if since_ms is Retained.FOREVER:
            continue
        for partition, committed in partitions.items():
            if not _is_over(committed, since_ms, moment, retention_ms):
                continue
            key = OffsetKey(group_id, topic_name, partition)
            committed_last = offsets.individual.refreshed(key, committed)
            is_over = _is_over(committed_last, since_ms, moment, retention_ms)
            if is_over and not offsets.is_pending(key):
                yield key


def _is_over(committed: CommittedOffset, since_ms: int | Retained, moment: Moment, retention_ms: int) -> bool:
    if committed.expires_at_ms != NO_TIMESTAMP:
        return moment.wall_ms >= committed.expires_at_ms
    if isinstance(since_ms, Retained):
        since_ms = committed.committed_at_ms
    return moment.now_ms - since_ms >= retention_ms
