"""The way of an acknowledgement through the folders, as CONTRIBUTING.md describes it."""

from __future__ import annotations

import pytest

from tests.conformance.conftest import Stage, with_log_store_only
from tests.conformance.described_way import CONTRIBUTING, described_steps, watched
from tests.conformance.share_member import ACCEPT, fetched

pytestmark = pytest.mark.interpreted

CROSSINGS_MAX = 9


@with_log_store_only
async def test_an_acknowledgement_goes_the_way_that_is_described(stage: Stage) -> None:
    await stage.produce(4)
    member = stage.member()
    assert await member.take() == [(0, 3, 1)]
    await member.fetch([(0, 0, ACCEPT)], max_records=0)  # the first one also loads modules
    described = described_steps(CONTRIBUTING, "The way of an acknowledgement")
    with watched(described) as way:
        pending = member.start_fetch([(1, 1, ACCEPT)], max_records=0)
    assert fetched(pending.response()).error == 0
    assert await stage.offsets() == (2, 2)
    assert way.steps == described
    assert way.crossings <= CROSSINGS_MAX
