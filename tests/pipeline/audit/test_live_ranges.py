"""The audit's own replay against the broker's durable image, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.pipeline.audit.live_ranges import LiveRanges, Range, live_ranges_of, mark_of
from barnabas.pipeline.audit.tables import OPEN
from barnabas.protocol.control_record import ShareDelta
from barnabas.protocol.delivery_state import RecordState, StateRange
from barnabas.storage.format.control_runs import ControlRuns
from barnabas.storage.format.share_image import ShareStateImage
from tests.pipeline.audit.auditing import Audited, offsets_of
from tests.pipeline.audit.written_logs import (
    ACKNOWLEDGED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    WrittenGroup,
    WrittenLog,
    accepted,
    released,
)

STATES = st.sampled_from([AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED])
FOLLOWERS = {AVAILABLE: set(RecordState), ARCHIVING: {ARCHIVING, ARCHIVED}}
"""The states that may follow one that is not final."""


def change_of(first: int, size: int, state: RecordState, count: int) -> StateRange:
    return StateRange(first, first + size, state, count)


CHANGES = st.builds(change_of, st.integers(0, 40), st.integers(0, 12), STATES, st.integers(0, 3))
OUTCOMES = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 6), st.sampled_from("arx")), max_size=20)


def same(live: LiveRanges, image: ShareStateImage) -> bool:
    ranges = [tuple(one[:4]) for one in image.ranges]
    return (live.start_offset, live.end_offset, [tuple(one) for one in live.ranges()]) == (
        image.start_offset,
        image.end_offset,
        ranges,
    )


@given(st.lists(st.lists(CHANGES, min_size=1, max_size=4), max_size=10))
def test_after_any_changes_the_state_is_that_of_the_broker(deltas: list[list[StateRange]]) -> None:
    image = ShareStateImage(ControlRuns())
    image.start_offset = image.end_offset = 0
    live = LiveRanges(0, 0)
    for offset, states in enumerate(deltas):
        delta = ShareDelta("group", 0, 0, 0, image.last_control_offset, states)
        image.replay_delta(delta, offset)
        for first, last, state, count, *_ in states:
            live.overlay(first, last, mark_of(state, count))
        live.pass_final()
        assert same(live, image)
    twin = live_ranges_of(image.start_offset, image.end_offset, [one[:4] for one in image.ranges])
    assert same(twin, image)


@given(st.lists(CHANGES, max_size=8), CHANGES)
def test_contradictions_are_ranges_that_were_final_or_on_their_way_or_delivered_more(
    before: list[StateRange], change: StateRange
) -> None:
    live = live_ranges_of(0, 0, [one[:4] for one in before])
    at = {offset: one for one in live.between(live.start_offset, 60) for offset in range(one[0], one[1] + 1)}
    contradicted = live.overlay(change.base_offset, change.last_offset, mark_of(*change[2:4]))
    expected = [
        offset
        for offset in range(max(change.base_offset, live.start_offset), change.last_offset + 1)
        if change.state not in FOLLOWERS.get(at[offset].state, ())
        or at[offset].delivery_count > change.delivery_count
    ]
    assert [offset for one in contradicted for offset in range(one[0], one[1] + 1)] == expected


def test_an_offset_in_no_range_was_never_delivered() -> None:
    live = live_ranges_of(0, 10, [(2, 3, RecordState.AVAILABLE, 2)])
    assert live.between(0, 5) == [
        Range(0, 1, AVAILABLE, 0),
        Range(2, 3, AVAILABLE, 2),
        Range(4, 5, AVAILABLE, 0),
    ]


def written(directory: Path, outcomes: Sequence[tuple[int, int, str]]) -> WrittenGroup:
    """A history as a broker writes it: named ranges are open, the gaps before them are filled."""
    log = WrittenLog(directory, "orders")
    log.produce(60)
    group = WrittenGroup(log)
    for at, size, kind in outcomes:
        image = group.image
        if kind == "x":
            group.checkpoint()
            continue
        first = image.start_offset + at
        last = min(first + size - 1, 59)
        if first > last or any(
            one.state is not AVAILABLE and one.base_offset <= last and one.last_offset >= first
            for one in image.ranges
        ):
            continue
        count = 1 + max(
            (
                one.delivery_count
                for one in image.ranges
                if one.base_offset <= last and one.last_offset >= first
            ),
            default=0,
        )
        fill = [StateRange(image.end_offset, first - 1, AVAILABLE, 0)] if first > image.end_offset else []
        outcome = accepted(first, last, count) if kind == "a" else released(first, last, count)
        group.delta(*fill, outcome)
        log.produce(1)
    return group


@settings(max_examples=40)
@given(OUTCOMES)
def test_the_end_of_an_audit_is_the_brokers_image(outcomes: list[tuple[int, int, str]]) -> None:
    with TemporaryDirectory() as directory:
        group = written(Path(directory), outcomes)
        audited = Audited(Path(directory))
        image, history = group.image, audited.history
        assert audited.violations == []
        assert (history["startOffset"], history["endOffset"]) == (image.start_offset, image.end_offset)
        final = {
            offset
            for one in image.ranges
            if one.state is not AVAILABLE
            for offset in range(one.base_offset, one.last_offset + 1)
        }
        final.update(range(image.start_offset))
        assert offsets_of(audited.deliveries, outcome="acknowledged") == sorted(final)
        assert offsets_of(audited.table(OPEN)) == [
            offset for offset in range(image.start_offset, image.end_offset) if offset not in final
        ]
