"""The records of a commit. Pure."""

from __future__ import annotations

from barnabas.coordinator.offsets.committed_offset import CommittedOffset, OffsetKey
from barnabas.coordinator.offsets.record_factory import committed_offset
from barnabas.coordinator.offsets.requests import CommitRequest, OffsetToCommit
from barnabas.protocol.classic_group_records import OffsetRecord
from barnabas.protocol.errors import ErrorCode


def storable(request: CommitRequest, metadata_bytes_max: int) -> tuple[CommitRequest, list[ErrorCode]]:
    """The request without the offsets whose metadata is too long, and the outcome of each offset."""
    stored: list[OffsetToCommit] = []
    codes: list[ErrorCode] = []
    for one in request.offsets:
        if len(one.metadata) <= metadata_bytes_max:
            stored.append(one)
            codes.append(ErrorCode.none)
        else:
            codes.append(ErrorCode.offset_metadata_too_large)
    return request._replace(offsets=stored), codes


def commit_records(request: CommitRequest, wall_ms: int) -> list[OffsetRecord]:
    """The records to write."""
    return [
        committed_offset(
            OffsetKey(request.group_id, one.topic_name, one.partition),
            CommittedOffset(one.offset, one.leader_epoch, one.metadata, wall_ms, topic_id=one.topic_id),
        )
        for one in request.offsets
    ]
