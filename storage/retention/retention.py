"""Chooses the segments to remove, oldest first: by log start, size and time (retention.bytes, retention.ms),
as in Kafka.

Only timestamps of records count. A segment with the newest checkpoint of a share group's state stays at any
age until the group has a newer one. The ids of the groups that keep a segment are returned, so that their
state is written again at the end of the log. Changes nothing: `segment_removal` removes the files.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.storage.segments.segment import Segment
from barnabas.storage.state.log_state import LogState


def expired_count(log: LogState, now_ms: int) -> int:
    """The number of segments to remove by log start, size or time; the active one may be among them."""
    excess_bytes = log.segments.size_bytes - log.config.retention_bytes
    count = 0
    for segment in log.segments:
        following = log.segments.after(segment)
        end_offset = log.log_end_offset if following is None else following.base_offset
        if log.is_holding and end_offset > log.high_watermark:
            break  # it has batches that do not count yet
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
    """Decides by the newest record. For records without timestamps the segment's creation time counts.

    A segment that holds only share state is removed with the ones before it.
    """
    if log.config.retention_ms < 0 or segment.size_bytes == 0:
        return False
    timestamp_ms, _ = segment.max_timestamp()
    if timestamp_ms < 0 and not segment.holds_share_state_alone():
        timestamp_ms = segment.created_ms
    return now_ms - timestamp_ms > log.config.retention_ms


def pinning_groups(log: LogState, count: int, durable_heads: Mapping[str, int]) -> tuple[int, frozenset[str]]:
    """How many of the first `count` segments may go without a share group's newest checkpoint, and the ids of
    the groups that keep the others.

    `durable_heads` are checkpoints that survive a loss of power, by group id. They count even if the group
    has a newer checkpoint, or a tombstone, because a loss of power could take that.
    """
    dropped = list(log.segments)[:count]
    following = log.segments.after(dropped[-1]) if dropped else None
    end_offset = log.log_end_offset if following is None else following.base_offset
    pinned = {
        group_id: offset
        for group_id, offset in {**log.share_heads.live(), **durable_heads}.items()
        if dropped and offset < end_offset
    }
    if pinned:
        lowest = min(pinned.values())
        count = max(sum(segment.base_offset <= lowest for segment in dropped) - 1, 0)
    return count, frozenset(pinned)
