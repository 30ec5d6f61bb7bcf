"""The way of an expired lock through the folders, as docs/architecture.md describes it."""

from __future__ import annotations

import pytest

from tests.conformance.conftest import Stage, with_log_store_only
from tests.conformance.described_way import ARCHITECTURE, described_steps, watched

pytestmark = pytest.mark.interpreted

LOCK_MS = 30_000


@with_log_store_only
async def test_an_expired_lock_goes_the_way_that_is_described(stage: Stage) -> None:
    await stage.produce(4)
    member = stage.member()
    assert await member.take() == [(0, 3, 1)]
    described = described_steps(ARCHITECTURE, "An expired lock")
    with watched(described) as way:
        await stage.lab.advance(LOCK_MS)
    assert await member.take() == [(0, 3, 2)]
    assert way.steps == described
