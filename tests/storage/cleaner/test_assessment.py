"""The numbers that decide whether a log is worth cleaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random

import pytest

from barnabas.storage.cleaner import assessment
from barnabas.storage.cleaner.assessment import (
    STATE_BYTES_MIN,
    StateBytes,
    assess_dirty,
    assess_state,
    choose_groups,
    dirty_sources,
    first_dirty_offset,
    group_sources,
)
from barnabas.storage.cleaner.sources import Source
from barnabas.storage.files.open_files import OpenFiles
from barnabas.storage.log_config import LogConfig
from barnabas.storage.segments.segment import Segment
from tests.storage.memory_filesystem import MemoryFileSystem

MIB = 1024 * 1024
CONFIG = LogConfig(segment_bytes=MIB, segment_index_bytes=1_000, compact_enabled=True)
NONE_GOES = dict.fromkeys(range(0, 500, 100), StateBytes(0, 0))


NO_OPEN = 10**9
"""Beyond every log: where the oldest open transaction begins, if none is open."""


def sources(*sizes_bytes: int, max_timestamps_ms: Sequence[int] = (), index_bytes: int = 0) -> list[Source]:
    """Segments of these sizes, 100 offsets each."""
    made: list[Source] = []
    for number, size_bytes in enumerate(sizes_bytes):
        segment = Segment(
            MemoryFileSystem(),
            "/data/orders-0",
            100 * number,
            index_interval_bytes=4096,
            open_files=OpenFiles(8),
            damaged_indexes=set(),
            created_ms=0,
        )
        segment.size_bytes = size_bytes
        segment.offset_index.size_bytes = index_bytes
        if max_timestamps_ms:
            segment.max_timestamp_ms = max_timestamps_ms[number]
        made.append(Source(segment, 100 * number + 100))
    return made


@pytest.mark.parametrize(
    ("state", "worth", "pinning_offset"),
    [
        ([StateBytes(MIB // 4, MIB // 4), StateBytes(0, 0)], [True, False], 0),
        ([StateBytes(MIB // 4 - 1, MIB // 4 - 1), StateBytes(0, 0)], [False, False], 0),
        ([StateBytes(MIB, MIB), StateBytes(MIB // 2, 0)], [True, False], 200),
        ([StateBytes(MIB // 2, 10), StateBytes(MIB // 5, 0)], [False, False], 100),
        ([StateBytes(0, 0), StateBytes(0, 0)], [False, False], 0),
    ],
)
def test_share_state_is_worth_a_cleaning_if_it_is_a_large_part(
    state: list[StateBytes], worth: list[bool], pinning_offset: int
) -> None:
    assert assess_state(sources(MIB, MIB), state) == (worth, pinning_offset)


def test_a_little_share_state_is_not_worth_a_cleaning_at_any_ratio() -> None:
    small = STATE_BYTES_MIN // 2
    below = [StateBytes(small - 1, small - 1), StateBytes(small, small)]
    assert assess_state(sources(small, small), below) == ([False, False], 0)
    assert assess_state(sources(small, small), [StateBytes(small, small)] * 2) == ([True, True], 0)
    assert assess_state(sources(small, small), [StateBytes(small, 0)] * 2) == ([False, False], 200)
    assert assess_state(sources(small), [StateBytes(small, 0)]) == ([False], 0)


@pytest.mark.parametrize(("cleaned_offset", "first"), [(0, 10), (10, 10), (15, 15), (20, 20), (21, 10)])
def test_a_checkpoint_outside_the_log_does_not_count(cleaned_offset: int, first: int) -> None:
    assert first_dirty_offset(cleaned_offset, log_start_offset=10, log_end_offset=20) == first


def test_the_dirty_part_ends_at_the_first_segment_that_is_too_young() -> None:
    config = LogConfig(min_compaction_lag_ms=50)
    some = sources(1, 1, 1, max_timestamps_ms=[100, 151, 120])
    assert dirty_sources(some, 0, NO_OPEN, config, now_ms=200) == some[:1]
    assert dirty_sources(some, 100, NO_OPEN, config, now_ms=200) == []
    assert dirty_sources(some, 100, NO_OPEN, config, now_ms=201) == some[1:]
    assert dirty_sources(some, 250, NO_OPEN, LogConfig(), now_ms=0) == some[2:]


@pytest.mark.parametrize(("undecided_offset", "count"), [(0, 0), (99, 0), (100, 1), (250, 2), (300, 3)])
def test_the_dirty_part_ends_at_the_segment_in_which_something_is_undecided(
    undecided_offset: int, count: int
) -> None:
    some = sources(1, 1, 1)
    assert dirty_sources(some, 0, undecided_offset, LogConfig(), now_ms=200) == some[:count]


@pytest.mark.parametrize(
    ("first_dirty", "max_lag_ms", "ratio", "is_due"),
    [
        (0, 10**9, 1.0, True),
        (100, 10**9, 0.5, False),
        (150, 10**9, 0.5, False),
        (100, 99, 0.5, True),
        (100, 100, 0.5, False),
        (200, 1, 0.0, False),
    ],
)
def test_a_compaction_is_due_by_how_much_is_dirty_or_how_old_it_is(
    first_dirty: int, max_lag_ms: int, ratio: float, is_due: bool
) -> None:
    config = LogConfig(min_cleanable_dirty_ratio=0.5, max_compaction_lag_ms=max_lag_ms)
    some = sources(1_000, 1_000)
    dirty = dirty_sources(some, first_dirty, NO_OPEN, config, 1_000)
    timestamps_ms = {source.base_offset: 900 for source in dirty}
    part = assess_dirty(some, dirty, first_dirty, config, 1_000, timestamps_ms)
    assert (part.ratio, part.is_due) == (ratio, is_due)
    assert part.end_offset == (200 if dirty else first_dirty)


def test_records_without_a_timestamp_are_not_too_old() -> None:
    config = LogConfig(min_cleanable_dirty_ratio=1, max_compaction_lag_ms=1)
    some = sources(1_000)
    assert not assess_dirty(some, some, 0, config, 1_000, {0: -1}).is_due


def test_segments_are_grouped_up_to_the_size_of_one() -> None:
    some = sources(MIB, MIB // 2, MIB // 2, 1, MIB)
    assert _sizes(group_sources(some, NONE_GOES, CONFIG)) == [1, 2, 1, 1]
    some_goes = NONE_GOES | {0: StateBytes(MIB - 1, MIB - 1), 100: StateBytes(1, 1)}
    assert _sizes(group_sources(some, some_goes, CONFIG)) == [3, 1, 1]


def test_indexes_and_offsets_have_their_bounds_too() -> None:
    config = LogConfig(segment_bytes=MIB, segment_index_bytes=1_000)
    assert _sizes(group_sources(sources(10, 10, 10, index_bytes=400), NONE_GOES, config)) == [2, 1]
    far = sources(10, 10)
    far[1] = Source(far[1].segment, 2**31)
    assert _sizes(group_sources(far, NONE_GOES, config)) == [2]
    far[1] = Source(far[1].segment, 2**31 + 1)
    assert _sizes(group_sources(far, NONE_GOES, config)) == [1, 1]


def test_a_segment_that_is_too_large_is_a_group_of_its_own() -> None:
    assert _sizes(group_sources(sources(2 * MIB, 1), NONE_GOES, CONFIG)) == [1, 1]


@pytest.mark.seeds(50)
def test_grouping_looks_at_each_segment_once_and_forms_the_largest_groups(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = Random(seed)
    some = sources(*(chance.choice((0, 10, 400, 900)) for _ in range(60)))
    state: dict[int, StateBytes] = {}
    for source in some:
        for index in source.segment.indexes:
            index.size_bytes = chance.choice((0, 8, 24, 80))
        cleanable = chance.choice((0, source.size_bytes // 2, source.size_bytes))
        state[source.base_offset] = StateBytes(source.size_bytes, cleanable)
    config = LogConfig(segment_bytes=1_000, segment_index_bytes=150)
    looked_at: list[int] = []
    original = assessment.sizes_left

    def noted(source: Source, cleanable_bytes: int) -> assessment.Sizes:
        looked_at.append(source.base_offset)
        return original(source, cleanable_bytes)

    monkeypatch.setattr(assessment, "sizes_left", noted)
    groups = group_sources(some, state, config)
    assert looked_at == [source.base_offset for source in some]
    assert [source for group in groups for source in group] == some
    assert all(len(group) == 1 or _fit(group, state, config) for group in groups)
    for group, (following, *_) in pairwise(groups):
        assert not _fit([*group, following], state, config)


def _fit(group: Sequence[Source], state: Mapping[int, StateBytes], config: LogConfig) -> bool:
    """Whether the sum of the group's remaining sizes is within the bounds."""
    left = [source.size_bytes - state[source.base_offset].cleanable for source in group]
    indexes = [
        sum(
            source.segment.indexes[kind].size_bytes * size_bytes // max(source.size_bytes, 1)
            for source, size_bytes in zip(group, left, strict=True)
        )
        for kind in range(4)
    ]
    return sum(left) <= config.segment_bytes and max(indexes) <= config.segment_index_bytes


@pytest.mark.parametrize(
    ("worth", "with_tombstone", "with_state", "chosen"),
    [
        ([300], [], [0, 100, 200, 300], [300]),
        ([300], [300], [0, 200, 300], [0, 200, 300]),
        ([300], [200], [0, 100, 200, 300], [300]),
        ([100, 400], [100], [0, 100, 300, 400], [0, 100, 400]),
        ([400], [400, 200], [200, 400], [200, 400]),
        ([], [300], [0, 300], []),
    ],
)
def test_a_tombstone_goes_only_together_with_all_share_state_before_it(
    worth: list[int], with_tombstone: list[int], with_state: list[int], chosen: list[int]
) -> None:
    groups = [[source] for source in sources(10, 10, 10, 10, 10)]
    state = {
        offset: StateBytes(5, 5 * (offset in with_state), offset in with_tombstone)
        for offset in range(0, 500, 100)
    }
    assert [group[0].base_offset for group in choose_groups(groups, worth, state)] == chosen


def _sizes(groups: list[list[Source]]) -> list[int]:
    return [len(group) for group in groups]
