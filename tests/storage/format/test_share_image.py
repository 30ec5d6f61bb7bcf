"""Replay of checkpoints and deltas into the durable image."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.control_record import ShareCheckpoint, ShareDelta
from barnabas.protocol.delivery_state import Cause, RecordState, StateRange
from barnabas.storage.format.control_runs import ControlRuns
from barnabas.storage.format.share_image import (
    UNDECIDED_OFFSET,
    ShareStateImage,
    clip_below,
    merge_ranges,
    overlay_range,
    overlay_ranges,
)

AVAILABLE, ACKNOWLEDGED, ARCHIVED = RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED


def available(first: int, last: int, count: int = 1) -> StateRange:
    return StateRange(first, last, AVAILABLE, count)


def done(first: int, last: int, count: int = 1) -> StateRange:
    return StateRange(first, last, ACKNOWLEDGED, count)


def image_of(start_offset: int, *states: StateRange, end_offset: int | None = None) -> ShareStateImage:
    if end_offset is None:
        end_offset = states[-1].last_offset + 1 if states else start_offset
    image = ShareStateImage(ControlRuns())
    image.replay_checkpoint(
        ShareCheckpoint("group", 3, 1, 0, 4, 5, start_offset, end_offset, 0, states), 1_000
    )
    return image


def replay(image: ShareStateImage, *states: StateRange) -> None:
    delta = ShareDelta("group", 3, 1, 0, image.last_control_offset, states)
    image.replay_delta(delta, image.last_control_offset + 1)


def test_a_new_image_knows_nothing() -> None:
    image = ShareStateImage(ControlRuns())
    assert (image.start_offset, image.end_offset) == (UNDECIDED_OFFSET, UNDECIDED_OFFSET)
    assert (image.ranges, image.delivery_complete_count, image.delta_count) == ([], 0, 0)


def test_a_checkpoint_sets_everything() -> None:
    image = image_of(10, available(10, 14), done(15, 19))
    replay(image, done(12, 12))
    states = (StateRange(30, 39, AVAILABLE, 2, Cause.RELEASE, "member"),)
    image.replay_checkpoint(ShareCheckpoint("group", 7, 2, 0, 8, 9, 30, 40, 0, states, deleted=True), 2_000)
    assert (image.group_incarnation, image.checkpoint_epoch) == (7, 2)
    assert (image.state_epoch, image.leader_epoch) == (8, 9)
    assert (image.start_offset, image.end_offset, image.ranges) == (30, 40, [available(30, 39, 2)])
    assert (image.last_control_offset, image.delta_count, image.deleted) == (2_000, 0, True)


def test_an_undecided_checkpoint_stays_undecided() -> None:
    image = image_of(-1)
    assert (image.start_offset, image.end_offset) == (-1, -1)


def test_each_delta_is_the_head_of_the_chain() -> None:
    image = image_of(0)
    replay(image, available(0, 4))
    replay(image, available(5, 9, 2))
    assert (image.last_control_offset, image.delta_count) == (1_002, 2)
    with pytest.raises(AssertionError):
        image.replay_delta(ShareDelta("group", 3, 1, 0, 999, []), 1_003)
    with pytest.raises(AssertionError):
        image.replay_delta(ShareDelta("group", 3, 2, 0, 1_002, []), 1_003)


@pytest.mark.parametrize(
    ("change", "ranges"),
    [
        pytest.param(done(100, 110), [], id="the same range: all is final"),
        pytest.param(done(105, 105), [available(100, 104), done(105, 105), available(106, 110)], id="inside"),
        pytest.param(done(100, 105), [available(106, 110)], id="the first part"),
        pytest.param(done(106, 110), [available(100, 105), done(106, 110)], id="the last part"),
        pytest.param(done(106, 115), [available(100, 105), done(106, 115)], id="over the end"),
        pytest.param(done(111, 115), [available(100, 110), done(111, 115)], id="behind the end"),
        pytest.param(done(120, 125), [available(100, 110), done(120, 125)], id="behind a hole"),
        pytest.param(available(105, 115), [available(100, 115)], id="alike, over the end"),
        pytest.param(available(111, 115), [available(100, 115)], id="alike, behind the end"),
        pytest.param(available(103, 105), [available(100, 110)], id="alike, inside"),
        pytest.param(
            available(100, 105, 2), [available(100, 105, 2), available(106, 110)], id="higher count"
        ),
        pytest.param(
            available(105, 110, 0), [available(100, 104), available(105, 110, 0)], id="the later one wins"
        ),
        pytest.param(done(90, 99), [available(100, 110)], id="below the start"),
        pytest.param(done(90, 102), [available(103, 110)], id="reaching over the start"),
    ],
)
def test_delta_is_laid_over_the_present_ranges(change: StateRange, ranges: list[StateRange]) -> None:
    image = image_of(100, available(100, 110))
    replay(image, change)
    assert image.ranges == ranges
    assert image.end_offset == max(111, change.last_offset + 1)


def test_a_delta_may_change_several_ranges() -> None:
    image = image_of(111, available(111, 120))
    replay(image, available(111, 113, 2), done(114, 114), available(115, 119, 2))
    assert image.ranges == [
        available(111, 113, 2),
        done(114, 114),
        available(115, 119, 2),
        available(120, 120),
    ]


def test_start_offset_moves_over_final_ranges_that_begin_at_it() -> None:
    image = image_of(0, available(0, 9))
    replay(image, done(5, 9))
    assert image.start_offset == 0
    replay(image, StateRange(0, 4, ARCHIVED, 1))
    assert (image.start_offset, image.end_offset, image.ranges) == (10, 10, [])


def test_start_offset_stops_at_a_hole() -> None:
    image = image_of(11, done(21, 30, 2), StateRange(31, 40, ARCHIVED, 1))
    assert image.start_offset == 11
    assert image.delivery_complete_count == 20


def test_final_records_are_counted_without_control_records() -> None:
    image = image_of(0, available(0, 4), done(5, 14), StateRange(15, 19, ARCHIVED, 5))
    image.control_runs.append(7, 9)
    assert image.delivery_complete_count == 12


def test_to_checkpoint_holds_the_image_and_changes_nothing() -> None:
    image = image_of(0, available(0, 9), done(10, 14))
    checkpoint = image.to_checkpoint("group", checkpoint_epoch=2, decided_at_ms=7, leader_epoch=6)
    assert checkpoint == ShareCheckpoint("group", 3, 2, 7, 4, 6, 0, 15, 5, (available(0, 9), done(10, 14)))
    twin = ShareStateImage(ControlRuns())
    twin.replay_checkpoint(checkpoint, 50)
    assert (twin.start_offset, twin.end_offset, twin.ranges) == (0, 15, image.ranges)


@pytest.mark.parametrize(
    ("start_offset", "expected_start", "expected_end", "states"),
    [
        pytest.param(5, 5, 15, (available(5, 9), done(10, 14)), id="inside"),
        pytest.param(10, 15, 15, (), id="onto final records"),
        pytest.param(40, 40, 40, (), id="ahead of the end"),
        pytest.param(0, 0, 15, (available(0, 9), done(10, 14)), id="never back"),
    ],
)
def test_a_checkpoint_may_start_at_a_later_offset(
    start_offset: int, expected_start: int, expected_end: int, states: tuple[StateRange, ...]
) -> None:
    image = image_of(0, available(0, 9), done(10, 14))
    checkpoint = image.to_checkpoint(
        "group", checkpoint_epoch=2, decided_at_ms=7, leader_epoch=6, start_offset=start_offset
    )
    assert (checkpoint.start_offset, checkpoint.end_offset) == (expected_start, expected_end)
    assert checkpoint.states == states
    assert image.start_offset == 0


def test_to_checkpoint_includes_the_changes_of_its_append() -> None:
    image = image_of(0, available(0, 9))
    changes = [StateRange(0, 4, ACKNOWLEDGED, 1, Cause.ACCEPT, "member"), available(10, 14, 0)]
    checkpoint = image.to_checkpoint(
        "group", checkpoint_epoch=2, decided_at_ms=7, leader_epoch=6, changes=changes
    )
    assert (checkpoint.start_offset, checkpoint.end_offset) == (5, 15)
    assert checkpoint.states == (available(5, 9), available(10, 14, 0))


def state_range(base: int, length: int, state: RecordState, count: int) -> StateRange:
    return StateRange(base, base + length, state, count)


STATE_RANGES = st.builds(
    state_range,
    st.integers(0, 40),
    st.integers(0, 12),
    st.sampled_from([AVAILABLE, ACKNOWLEDGED, ARCHIVED]),
    st.integers(0, 2),
)


@given(st.lists(STATE_RANGES, max_size=12))
def test_overlaying_is_last_write_wins_offset_by_offset(changes: list[StateRange]) -> None:
    ranges: list[StateRange] = []
    offsets: dict[int, tuple[RecordState, int]] = {}
    for change in changes:
        overlay_range(ranges, change)
        for offset in range(change.base_offset, change.last_offset + 1):
            offsets[offset] = (change.state, change.delivery_count)
    found = {
        offset: (one.state, one.delivery_count)
        for one in ranges
        for offset in range(one.base_offset, one.last_offset + 1)
    }
    assert found == offsets
    for one, after in pairwise(ranges):
        assert one.last_offset < after.base_offset, "sorted and disjoint"
        assert one.last_offset + 1 < after.base_offset or one[2:] != after[2:], "merged"


@given(st.lists(STATE_RANGES, max_size=12), st.lists(STATE_RANGES, max_size=20), st.booleans())
def test_changes_laid_over_in_one_pass_have_the_same_result(
    before: list[StateRange], changes: list[StateRange], ascending: bool
) -> None:
    if ascending:
        offset = -1
        for index, one in enumerate(changes):
            length, gap = one.last_offset - one.base_offset, one.base_offset % 3
            changes[index] = one._replace(base_offset=offset + 1 + gap, last_offset=offset + 1 + gap + length)
            offset = changes[index].last_offset
    singly: list[StateRange] = []
    for change in before:
        overlay_range(singly, change)
    together = list(singly)
    for change in changes:
        overlay_range(singly, change)
    overlay_ranges(together, changes)
    assert together == singly


def test_merging_joins_touching_ranges_that_are_equal_in_everything() -> None:
    accepted = StateRange(0, 4, ACKNOWLEDGED, 1, Cause.ACCEPT, "member")
    assert merge_ranges([accepted, accepted._replace(base_offset=5, last_offset=9)]) == [
        accepted._replace(last_offset=9)
    ]
    apart = [accepted, accepted._replace(base_offset=6, last_offset=9)]
    assert merge_ranges(apart) == apart
    other_cause = [accepted, StateRange(5, 9, ACKNOWLEDGED, 1, Cause.ADMIN, "member")]
    assert merge_ranges(other_cause) == other_cause


def test_clipping_keeps_offsets_at_or_above() -> None:
    assert clip_below([available(0, 4), available(5, 9, 2)], 7) == [available(7, 9, 2)]
    assert clip_below([available(0, 4)], 0) == [available(0, 4)]
