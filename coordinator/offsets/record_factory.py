"""The records of committed offsets and ranges, made from their state."""

from __future__ import annotations

from uuid import UUID

from barnabas.coordinator.offsets.committed_offset import CommittedOffset, OffsetKey
from barnabas.protocol.classic_group_records import OffsetCommitKey, OffsetCommitValue, OffsetRecord
from barnabas.protocol.committed_ranges import OffsetRange
from barnabas.protocol.offset_range_records import OffsetRangeKey, OffsetRangeRecord, OffsetRangeValue


def committed_offset(key: OffsetKey, committed: CommittedOffset, wall_ms: int) -> OffsetRecord:
    """The record of an offset that is committed at this time of day."""
    return _record_key(key), OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp_ms=wall_ms,
        expire_timestamp_ms=committed.expires_at_ms,
        topic_id=committed.topic_id,
        keeps_ranges=committed.keeps_ranges,
    )


def deleted_offset(key: OffsetKey) -> OffsetRecord:
    return _record_key(key), None


def committed_range(
    key: OffsetKey, added: OffsetRange, committed_at_ms: int, topic_id: UUID, member_id: str = ""
) -> OffsetRangeRecord:
    return _range_key(key, added), OffsetRangeValue(
        commit_timestamp_ms=committed_at_ms, topic_id=topic_id, member_id=member_id
    )


def deleted_range(key: OffsetKey, removed: OffsetRange) -> OffsetRangeRecord:
    return _range_key(key, removed), None


def _range_key(key: OffsetKey, offset_range: OffsetRange) -> OffsetRangeKey:
    return OffsetRangeKey(
        group=key.group_id,
        topic=key.topic_name,
        partition=key.partition,
        first_offset=offset_range.first_offset,
        last_offset=offset_range.last_offset,
    )


def _record_key(key: OffsetKey) -> OffsetCommitKey:
    return OffsetCommitKey(group=key.group_id, topic=key.topic_name, partition=key.partition)
