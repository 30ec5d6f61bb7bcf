"""The records of committed offsets, made from their state."""

from __future__ import annotations

from barnabas.coordinator.offsets.committed_offset import CommittedOffset, OffsetKey
from barnabas.protocol.classic_group_records import OffsetCommitKey, OffsetCommitValue, OffsetRecord


def committed_offset(key: OffsetKey, committed: CommittedOffset) -> OffsetRecord:
    return _record_key(key), OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp_ms=committed.committed_at_ms,
        expire_timestamp_ms=committed.expires_at_ms,
        topic_id=committed.topic_id,
    )


def deleted_offset(key: OffsetKey) -> OffsetRecord:
    return _record_key(key), None


def _record_key(key: OffsetKey) -> OffsetCommitKey:
    return OffsetCommitKey(group=key.group_id, topic=key.topic_name, partition=key.partition)
