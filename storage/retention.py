"""Which segments go, oldest first: by log start, size and time (retention.bytes, retention.ms), as in Kafka.

Times are those of records alone. A segment that holds the newest checkpoint of a share group's state stays
until the group has a newer one, however old it is; the groups that hold a segment back are told, so that
their state is written again further on. Changes nothing: the files are removed by the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from barnabas.protocol.control_record import ControlType
from barnabas.storage.format.share_index import ShareIndexEntry
from barnabas.storage.log_state import LogState
from barnabas.storage.segment import Segment
from barnabas.storage.share_state import read_group_id


def expired_count(log: LogState, now_ms: int) -> int:
    """How many segments may go by log start, size or time, the active one possibly among them."""
    excess_bytes = log.segments.size_bytes - log.config.retention_bytes
    count = 0
    for segment in log.segments:
        following = log.segments.after(segment)
        is_below_start = following is not None and following.base_offset <= log.log_start_offset
        if not is_below_start and not log.config.delete_enabled:
            break
        is_excess = log.config.retention_bytes >= 0 and excess_bytes >= segment.size_bytes
        if not (is_below_start or is_excess or _is_too_old(log, segment, now_ms)):
            break
        excess_bytes -= segment.size_bytes
        count += 1
    return count


def _is_too_old(log: LogState, segment: Segment, now_ms: int) -> bool:
    """By its newest record; of records without timestamps only the time since they were opened is known.

    A segment of share state alone goes with the ones before it.
    """
    if log.config.retention_ms < 0 or segment.size_bytes == 0:
        return False
    timestamp_ms, _ = segment.max_timestamp()
    if timestamp_ms < 0 and not segment.holds_share_state_alone():
        timestamp_ms = segment.created_ms
    return now_ms - timestamp_ms > log.config.retention_ms


def newest_entries(log: LogState, hashed: int) -> Iterator[ShareIndexEntry]:
    """The share index's entries for a group hash, from the end of the log down."""
    for segment in reversed(log.segments):
        yield from segment.share_index.get().newest_first(hashed)


def pinning_groups(log: LogState, count: int) -> tuple[int, frozenset[str]]:
    """How many of the first `count` segments hold no share group's newest checkpoint, and the ids of the
    groups that hold back the rest. Raises OSError, RecordFormatError.
    """
    dropped = list(log.segments)[:count]
    following = log.segments.after(dropped[-1]) if dropped else None
    end_offset = log.log_end_offset if following is None else following.base_offset
    pinned = {
        group_id: entry.offset
        for group_id, entry in _newest_checkpoints(dropped).items()
        if not entry.tombstone and not _has_newer_checkpoint(log, group_id, entry.group_hash, end_offset)
    }
    if pinned:
        lowest = min(pinned.values())
        count = sum(segment.base_offset <= lowest for segment in dropped) - 1
    return count, frozenset(pinned)


def _newest_checkpoints(segments: Sequence[Segment]) -> dict[str, ShareIndexEntry]:
    """Each group's newest checkpoint in these segments, by group id: groups may share a hash."""
    newest: dict[str, ShareIndexEntry] = {}
    for segment in reversed(segments):
        for entry in segment.share_index.get().checkpoints_newest_first():
            newest.setdefault(_group_id(segment, entry), entry)
    return newest


def _has_newer_checkpoint(log: LogState, group_id: str, hashed: int, start_offset: int) -> bool:
    """Whether the group's state begins anew, or ends, at or behind `start_offset`."""
    for entry in newest_entries(log, hashed):
        if entry.offset < start_offset:
            return False
        is_checkpoint = entry.kind == ControlType.SHARE_CHECKPOINT
        if is_checkpoint and _group_id(log.segments.floor(entry.offset), entry) == group_id:
            return True
    return False


def _group_id(segment: Segment, entry: ShareIndexEntry) -> str:
    return read_group_id(segment.read(entry.position, entry.length_bytes))
