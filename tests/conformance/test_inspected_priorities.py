"""The priorities that DescribeShareRecords shows in groups with `share.priority.header`: those that the
leader knows without a read. With both stores of share state.
"""

from __future__ import annotations

from tests.conformance.conftest import Stage
from tests.conformance.records_of_a_group import ACQUIRED, ARCHIVED, AVAILABLE, NEW, describe
from tests.conformance.share_member import GROUP, REJECT, RELEASE
from tests.conformance.test_priorities import members, produce, taken

UNKNOWN = -1


async def shown(stage: Stage) -> list[tuple[int, int, int, int]]:
    """(first offset, last offset, state, priority) of each range."""
    page = await describe(stage.lab, stage.partition)
    return [(one.first_offset, one.last_offset, one.state, one.priority) for one in page.response.ranges]


async def test_records_in_the_window_have_their_priorities(stage: Stage) -> None:
    (one,) = await members(stage)
    await produce(stage, None, 3, 3, 9, b"high")
    assert await taken(one, max_records=1) == [3]
    assert await shown(stage) == [
        (0, 0, AVAILABLE, 0),
        (1, 2, AVAILABLE, 3),
        (3, 3, ACQUIRED, 9),
        (4, 4, AVAILABLE, 0),
    ]


async def test_priorities_of_new_and_of_final_records_are_unknown(stage: Stage) -> None:
    (one,) = await members(stage)
    await produce(stage, 0, 9)
    assert await taken(one, max_records=1) == [1]
    await one.acknowledge([(1, 1, REJECT)])
    base = await produce(stage, 5)
    assert await shown(stage) == [
        (0, 0, AVAILABLE, 0),
        (1, 1, ARCHIVED, UNKNOWN),
        (base, base, NEW, UNKNOWN),
    ]


async def test_priorities_are_known_again_with_the_first_fetch_after_a_restart(stage: Stage) -> None:
    (one,) = await members(stage)
    await produce(stage, 2, 9, 2)
    assert await taken(one) == [0, 1, 2]
    await one.acknowledge([(0, 2, RELEASE)])
    await stage.lab.crash()
    assert await shown(stage) == [(0, 2, AVAILABLE, UNKNOWN)]
    assert await taken(stage.member(), max_records=1) == [1]
    assert await shown(stage) == [(0, 0, AVAILABLE, 2), (1, 1, ACQUIRED, 9), (2, 2, AVAILABLE, 2)]


async def test_groups_without_priorities_have_none(stage: Stage) -> None:
    await produce(stage, 9, 3)
    assert await taken(stage.member()) == [0, 1]
    assert {priority for *_, priority in await shown(stage)} == {UNKNOWN}


async def test_priorities_of_another_header_are_unknown_until_the_next_fetch(stage: Stage) -> None:
    (one,) = await members(stage)
    await produce(stage, 1, 9)
    assert await taken(one, max_records=1) == [1]
    await one.acknowledge([(1, 1, RELEASE)])
    await stage.lab.configure_group(GROUP, priority_header="other")
    assert await shown(stage) == [(0, 0, AVAILABLE, UNKNOWN), (1, 1, AVAILABLE, UNKNOWN)]
    assert await taken(one, max_records=1) == [0]
    assert await shown(stage) == [(0, 0, ACQUIRED, 0), (1, 1, AVAILABLE, 0)]
