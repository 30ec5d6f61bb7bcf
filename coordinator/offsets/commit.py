"""What a commit writes. Pure."""

from __future__ import annotations

from barnabas.coordinator.offsets.committed_offset import CommittedOffset, OffsetKey
from barnabas.coordinator.offsets.record_factory import committed_offset
from barnabas.coordinator.offsets.requests import CommitRequest, OffsetToCommit
from barnabas.protocol.classic_group_records import OffsetRecord
from barnabas.protocol.errors import ErrorCode


def has_room(offset: OffsetToCommit, metadata_bytes_max: int) -> bool:
    """Whether the offset's metadata is short enough to be stored."""
    return len(offset.metadata) <= metadata_bytes_max


def commit_records(
    request: CommitRequest, wall_ms: int, metadata_bytes_max: int
) -> tuple[list[OffsetRecord], list[ErrorCode]]:
    """The records to write, and the outcome of each offset in the request's order."""
    records: list[OffsetRecord] = []
    codes: list[ErrorCode] = []
    for one in request.offsets:
        if not has_room(one, metadata_bytes_max):
            codes.append(ErrorCode.offset_metadata_too_large)
            continue
        codes.append(ErrorCode.none)
        key = OffsetKey(request.group_id, one.topic_name, one.partition)
        committed = CommittedOffset(
            one.offset, one.leader_epoch, one.metadata, wall_ms, topic_id=one.topic_id
        )
        records.append(committed_offset(key, committed))
    return records, codes
