"""`ShareBrowser.history` against the real broker in virtual time."""

from __future__ import annotations

import pytest

from barnabas.client import (
    Cause,
    DescribedState,
    GroupNotFoundError,
    MisuseError,
    ShareBrowser,
    UnknownTopicError,
)
from barnabas.share.log_store import history_search
from tests.client.holding import holding, topic_of
from tests.client.inspect.test_share_browser import browser
from tests.client.virtual_world import ADDRESS, GROUP, TOPIC, World, virtually


async def causes(look: ShareBrowser, offset: int) -> list[tuple[Cause, DescribedState, int]]:
    """The steps with a cause, oldest first."""
    steps = await look.history(TOPIC, 0, offset)
    assert steps is not None
    assert [one.control_offset for one in steps] == sorted(one.control_offset for one in steps)
    return [(one.cause, one.state, one.delivery_count) for one in steps if one.cause]


@virtually
async def test_the_changes_of_a_record_are_told_oldest_first_over_any_number_of_pages(world: World) -> None:
    await topic_of(world, "a", "b")
    for _ in range(3):
        async with holding(world, 2) as (consumer, held):
            held[0].release()
            held[1].release()
            await consumer.commit()
    expected = [(Cause.RELEASE, DescribedState.AVAILABLE, count) for count in (1, 2, 3)]
    async with browser() as look:
        assert await causes(look, 0) == expected
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(history_search, "SEARCHED_RECORDS_MAX", 1)
            assert await causes(look, 1) == expected


@virtually
async def test_a_record_without_changes_has_none(world: World) -> None:
    await topic_of(world, "a", "b")
    async with holding(world, 1), browser() as look:
        assert await causes(look, 0) == []
        assert await causes(look, 1) == []


@virtually
async def test_unknown_names_are_errors(world: World) -> None:
    await topic_of(world, "a")
    async with holding(world, 1), browser() as look:
        with pytest.raises(UnknownTopicError):
            await look.history("nowhere", 0, 0)
        with pytest.raises(MisuseError, match="has no partition 7"):
            await look.history(TOPIC, 7, 0)
    async with ShareBrowser(ADDRESS, group=f"{GROUP}-other") as look:
        with pytest.raises(GroupNotFoundError):
            await look.history(TOPIC, 0, 0)
