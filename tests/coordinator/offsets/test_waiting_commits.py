"""The choice of the next waiting commit, compared with all subsets of the commits."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordinator.offsets.committed_offset import OffsetKey
from barnabas.coordinator.offsets.waiting_commits import Reach, WaitingCommit, next_to_answer
from barnabas.protocol.committed_ranges import CommittedRanges, OffsetRange, merged

STABLE_OFFSET = 9
KEYS = [OffsetKey("g", "t", 0), OffsetKey("g", "t", 1)]

offsets = st.integers(6, 22)
ranges = st.lists(st.tuples(offsets, st.integers(0, 2)), min_size=1, max_size=3).map(
    lambda ones: merged((first, first + more) for first, more in ones)
)
commits = st.dictionaries(st.sampled_from(KEYS), ranges, min_size=1)


def waiting_commit(named: dict[OffsetKey, Sequence[OffsetRange]]) -> WaitingCommit:
    return WaitingCommit(cast("Any", None), named)


def reach(_: OffsetKey, added: Sequence[OffsetRange]) -> Reach:
    return Reach(STABLE_OFFSET, CommittedRanges(STABLE_OFFSET, added).stable_offset)


def reach_together(together: Sequence[WaitingCommit]) -> bool:
    """Whether each commit's first offset beyond the stable offset has no gap before it."""
    for key in KEYS:
        offsets_of = {
            offset
            for one in together
            for first, last in one.ranges.get(key, ())
            for offset in range(first, last + 1)
        }
        gap = next(offset for offset in range(STABLE_OFFSET + 1, 99) if offset not in offsets_of)
        for one in together:
            beyond = [first for first, last in one.ranges.get(key, ()) if last > STABLE_OFFSET]
            if beyond and beyond[0] > gap:
                return False
    return True


@given(st.lists(commits, max_size=5))
def test_the_next_to_answer_is_the_lowest_of_all_that_reach_the_stable_offset_together(
    named: list[dict[OffsetKey, Sequence[OffsetRange]]],
) -> None:
    waiting = [waiting_commit(one) for one in named]
    answerable = {
        one
        for count in range(1, len(waiting) + 1)
        for together in combinations(waiting, count)
        if reach_together(together)
        for one in together
    }
    chosen = next_to_answer(waiting, reach)
    if chosen is None:
        assert not answerable
    else:
        assert chosen in answerable
        assert chosen.lowest_offset == min(one.lowest_offset for one in answerable)
