"""Decides whether a log is worth cleaning, and which segments, as in Apache Kafka 4.3's LogCleanerManager.

There are two reasons. Share state below the earliest share offset (ESO): segments with a large part of it are
rewritten. Records of a compacted topic: if the part appended since the last compaction is large or old
enough, the whole log is rewritten up to the end of the map of the dirty part. If both are due, both happen at
once. This module only decides, and writes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from operator import add
from typing import NamedTuple

from barnabas.storage.cleaner.sources import Source
from barnabas.storage.log_config import LogConfig
from barnabas.storage.segments.segment import RELATIVE_OFFSET_MAX

STATE_RATIO_MIN = 0.25
"""The removable share state, as a part of the segment, from which on a segment is rewritten."""
STATE_BYTES_MIN = 64 * 1024
"""The removable share state of the log from which on any segment is rewritten for it."""


class StateBytes(NamedTuple):
    """The removable bytes of share state in a source: `total` if no group needed any, `cleanable` below the
    ESO.

    `has_tombstone` if a deleted group's tombstone is among the latter.
    """

    total: int
    cleanable: int
    has_tombstone: bool = False


class StateAssessment(NamedTuple):
    """`worth` has for each source whether its share state alone justifies a rewrite.

    If groups' newest checkpoints below `pinning_offset` keep share state that would justify one, this is the
    end of that state; 0 if none does.
    """

    worth: Sequence[bool]
    pinning_offset: int


class DirtyPart(NamedTuple):
    """The part of a compacted log with the keys of a pass: from `first_dirty_offset` to `end_offset`."""

    first_dirty_offset: int
    end_offset: int
    ratio: float
    """Its part of the log, in bytes, without segments that may not be cleaned yet."""
    is_due: bool


def assess_state(sources: Sequence[Source], state_bytes: Sequence[StateBytes]) -> StateAssessment:
    """The sources that are worth a rewrite for their share state alone."""
    worth = [
        _is_worth(source, measured.cleanable) for source, measured in zip(sources, state_bytes, strict=True)
    ]
    if (
        sum(measured.cleanable for measured, is_worth in zip(state_bytes, worth, strict=True) if is_worth)
        < STATE_BYTES_MIN
    ):
        worth = [False] * len(sources)
    held = [
        (source.end_offset, measured.total - measured.cleanable)
        for source, measured in zip(sources, state_bytes, strict=True)
        if not _is_worth(source, measured.cleanable) and _is_worth(source, measured.total)
    ]
    is_held = sum(size_bytes for _, size_bytes in held) >= STATE_BYTES_MIN
    return StateAssessment(worth, held[-1][0] if is_held else 0)


def _is_worth(source: Source, cleanable_bytes: int) -> bool:
    return cleanable_bytes > 0 and cleanable_bytes >= STATE_RATIO_MIN * source.size_bytes


def first_dirty_offset(cleaned_offset: int, log_start_offset: int, log_end_offset: int) -> int:
    """The end of the last compaction, or the log start if that offset is impossible."""
    return cleaned_offset if log_start_offset <= cleaned_offset <= log_end_offset else log_start_offset


def dirty_sources(
    sources: Sequence[Source], first_dirty: int, undecided_offset: int, config: LogConfig, now_ms: int
) -> list[Source]:
    """The sources with offsets from `first_dirty` on, up to the first that may not be compacted.

    That is one with a record younger than min.compaction.lag.ms, or one that ends above `undecided_offset`,
    the start of the oldest open transaction.
    """
    dirty: list[Source] = []
    for source in sources:
        if source.end_offset <= first_dirty:
            continue
        if source.end_offset > undecided_offset:
            break
        lag_ms = config.min_compaction_lag_ms
        if lag_ms > 0 and source.segment.max_timestamp()[0] > now_ms - lag_ms:
            break
        dirty.append(source)
    return dirty


def assess_dirty(
    sources: Sequence[Source],
    dirty: Sequence[Source],
    first_dirty: int,
    config: LogConfig,
    now_ms: int,
    first_timestamps_ms: Mapping[int, int],
) -> DirtyPart:
    """Whether a compaction is due; `first_timestamps_ms` has each dirty source's by its base offset."""
    clean_bytes = sum(source.size_bytes for source in sources if source.end_offset <= first_dirty)
    dirty_bytes = sum(source.size_bytes for source in dirty)
    ratio = dirty_bytes / (clean_bytes + dirty_bytes) if dirty_bytes else 0.0
    oldest_ms = min(
        (timestamp_ms for timestamp_ms in first_timestamps_ms.values() if timestamp_ms > 0), default=now_ms
    )
    is_too_old = oldest_ms < now_ms - config.max_compaction_lag_ms
    is_due = bool(dirty_bytes) and (is_too_old or ratio > config.min_cleanable_dirty_ratio)
    end_offset = dirty[-1].end_offset if dirty else first_dirty
    return DirtyPart(first_dirty, end_offset, ratio, is_due)


def group_sources(
    sources: Sequence[Source], state: Mapping[int, StateBytes], config: LogConfig
) -> list[list[Source]]:
    """The sources in groups; each group becomes one segment of at most segment.bytes.

    `state` is by base offset. Records count as if compaction kept all. Indexes and offsets have bounds, too.
    A source that exceeds a bound alone is its own group.
    """
    groups: list[list[Source]] = []
    together = Sizes(0, ())
    for source in sources:
        alone = sizes_left(source, state[source.base_offset].cleanable)
        joined = together.plus(alone)
        if groups and _fits(groups[-1][0], source, joined, config):
            groups[-1].append(source)
            together = joined
        else:
            groups.append([source])
            together = alone
    return groups


def choose_groups(
    groups: Sequence[Sequence[Source]], worth: Collection[int], state: Mapping[int, StateBytes]
) -> list[Sequence[Source]]:
    """The groups with a source in `worth` (base offsets), and the groups that must be cleaned with them.

    A tombstone may be removed only when no older state of its share group is left, or the share group would
    come back. So with a tombstone all share state before it is removed in the same pass, the oldest first.
    """
    chosen: list[Sequence[Source]] = []
    has_tombstone = False
    for group in reversed(groups):
        state_of_group = [state[source.base_offset] for source in group]
        is_worth = any(source.base_offset in worth for source in group)
        if is_worth or (has_tombstone and any(measured.cleanable for measured in state_of_group)):
            chosen.append(group)
            has_tombstone |= any(measured.has_tombstone for measured in state_of_group)
    return chosen[::-1]


class Sizes(NamedTuple):
    """The remaining bytes of some sources: of their batches, and of each kind of index."""

    batches: int
    indexes: Sequence[int]

    def plus(self, other: Sizes) -> Sizes:
        return Sizes(self.batches + other.batches, list(map(add, self.indexes, other.indexes)))


def sizes_left(source: Source, cleanable_bytes: int) -> Sizes:
    """The sizes without `cleanable_bytes`; indexes are assumed to shrink in proportion."""
    left_bytes, size_bytes = source.size_bytes - cleanable_bytes, max(source.size_bytes, 1)
    indexes = [index.size_bytes * left_bytes // size_bytes for index in source.segment.indexes]
    return Sizes(left_bytes, indexes)


def _fits(first: Source, last: Source, sizes: Sizes, config: LogConfig) -> bool:
    """Whether the sources from `first` to `last`, with `sizes` left, may become one segment."""
    return (
        sizes.batches <= config.segment_bytes
        and all(size_bytes <= config.segment_index_bytes for size_bytes in sizes.indexes)
        and last.end_offset - 1 - first.base_offset <= RELATIVE_OFFSET_MAX
    )
