"""The checks and the records of a commit. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from uuid import UUID

from barnabas.coordinator.group.records import AnyOffsetRecord
from barnabas.coordinator.offsets.committed_offset import CommittedOffset, OffsetKey
from barnabas.coordinator.offsets.committed_offsets import CommittedOffsets
from barnabas.coordinator.offsets.partition_ranges import PartitionRanges, RangeWrites
from barnabas.coordinator.offsets.record_factory import committed_offset, committed_range, deleted_range
from barnabas.coordinator.offsets.requests import NO_START, CommitRequest, OffsetToCommit
from barnabas.coordinator.offsets.settings import OffsetSettings
from barnabas.protocol.committed_ranges import OffsetRange, merged
from barnabas.protocol.errors import ErrorCode
from barnabas.runtime.moment import Moment


def storable(
    request: CommitRequest,
    offsets: CommittedOffsets,
    settings: OffsetSettings,
    *,
    in_transaction: bool,
    waiting_count: Callable[[OffsetKey], int] = lambda _: 0,
) -> tuple[CommitRequest, list[ErrorCode]]:
    """The request without the offsets that cannot be stored, and the outcome of each offset.

    OFFSET_METADATA_TOO_LARGE. For ranges INVALID_REQUEST if they are negative, or if there is no committed
    offset and no position to begin at, which a transaction cannot set; INVALID_COMMIT_OFFSET_SIZE if there
    would be too many, with those that wait.
    """
    stored: list[OffsetToCommit] = []
    codes: list[ErrorCode] = []
    for commit in request.offsets:
        code = ErrorCode.none
        if len(commit.metadata) > settings.metadata_bytes_max:
            code = ErrorCode.offset_metadata_too_large
        elif commit.ranges is not None:
            key, begins_at = _key(request, commit), NO_START if in_transaction else commit.offset
            room = settings.partition_ranges_max - waiting_count(key)
            code = _check_ranges(key, commit.ranges, begins_at, offsets, room)
        codes.append(code)
        if code is ErrorCode.none:
            stored.append(commit)
    return request._replace(offsets=stored), codes


def _check_ranges(
    key: OffsetKey,
    ranges: Sequence[OffsetRange],
    begins_at: int,
    offsets: CommittedOffsets,
    room: int,
) -> ErrorCode:
    if any(first_offset < 0 for first_offset, _ in ranges):
        return ErrorCode.invalid_request
    if begins_at < 0 and offsets.find(key) is None:
        return ErrorCode.invalid_request
    found = ranges_of(key, begins_at, offsets).ranges
    pending_count = sum(1 for _ in offsets.individual.pending(key))
    count = len(found) + pending_count + len(ranges)
    if count > room:
        change = found.plan(ranges)
        count = len(found) + pending_count + len(change.added) - len(change.removed)
    return ErrorCode.none if count <= room else ErrorCode.invalid_commit_offset_size


def commit_records(
    request: CommitRequest, offsets: CommittedOffsets, moment: Moment, *, in_transaction: bool
) -> list[AnyOffsetRecord]:
    """The records to write. The ranges of a transaction are merged with others when it is committed."""
    records: list[AnyOffsetRecord] = []
    for commit in request.offsets:
        key = _key(request, commit)
        if commit.ranges is None:
            committed = _committed(commit, commit.offset, moment)
            records.append(committed_offset(key, committed, moment.wall_ms))
            if not in_transaction:
                records += range_tombstones(key, offsets)
        elif in_transaction:
            member_id = request.identity.member_id
            records += [
                committed_range(key, added, moment.wall_ms, commit.topic_id, member_id)
                for added in merged(commit.ranges)
            ]
        else:
            records += _individual_records(key, commit, commit.ranges, offsets, moment)
    return records


def _individual_records(
    key: OffsetKey,
    commit: OffsetToCommit,
    ranges: Sequence[OffsetRange],
    offsets: CommittedOffsets,
    moment: Moment,
) -> list[AnyOffsetRecord]:
    found = ranges_of(key, commit.offset, offsets)
    writes = found.writes_of(found.ranges.plan(ranges))
    records: list[AnyOffsetRecord] = []
    if offsets.find(key) is None or writes.stable_offset != found.logged_stable_offset:
        committed = _committed(commit, writes.stable_offset + 1, moment)._replace(keeps_ranges=True)
        records.append(committed_offset(key, committed, moment.wall_ms))
    return [*records, *_range_records(key, writes, commit.topic_id, moment.wall_ms)]


def range_tombstones(key: OffsetKey, offsets: CommittedOffsets) -> list[AnyOffsetRecord]:
    """The records that delete all ranges of a partition, also those of open transactions.

    Another record takes them out of force. Without tombstones they would come back after that one is cleaned.
    """
    found = offsets.individual.find(key)
    ranges = set[OffsetRange]() if found is None else found.logged()
    ranges.update(pending.added for pending in offsets.individual.pending(key))
    return [deleted_range(key, offset_range) for offset_range in sorted(ranges)]


def amending_records(key: OffsetKey, offsets: CommittedOffsets, wall_ms: int) -> list[AnyOffsetRecord]:
    """The records that bring the log in step with the ranges, after a transaction has ended."""
    found, committed = offsets.individual.find(key), offsets.find(key)
    writes = None if found is None else found.amending_writes()
    if found is None or committed is None or writes is None:
        return []
    records: list[AnyOffsetRecord] = []
    if writes.stable_offset != found.logged_stable_offset:
        records.append(committed_offset(key, committed._replace(keeps_ranges=True), wall_ms))
    return [*records, *_range_records(key, writes, committed.topic_id, wall_ms)]


def _range_records(
    key: OffsetKey, writes: RangeWrites, topic_id: UUID, wall_ms: int
) -> Iterator[AnyOffsetRecord]:
    for added in writes.added:
        yield committed_range(key, added, wall_ms, topic_id)
    for removed in writes.removed:
        yield deleted_range(key, removed)


def ranges_of(key: OffsetKey, begins_at: int, offsets: CommittedOffsets) -> PartitionRanges:
    """The ranges of a partition; of one without any, behind its committed offset or where it begins."""
    found = offsets.individual.find(key)
    if found is not None:
        return found
    committed = offsets.find(key)
    return PartitionRanges((begins_at if committed is None else committed.offset) - 1)


def _key(request: CommitRequest, commit: OffsetToCommit) -> OffsetKey:
    return OffsetKey(request.group_id, commit.topic_name, commit.partition)


def _committed(commit: OffsetToCommit, offset: int, moment: Moment) -> CommittedOffset:
    return CommittedOffset(
        offset, commit.leader_epoch, commit.metadata, moment.now_ms, topic_id=commit.topic_id
    )
