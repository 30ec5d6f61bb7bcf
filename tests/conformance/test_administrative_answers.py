"""A confirmed change stays in force after a failure of the broker."""

from __future__ import annotations

import pytest

from barnabas.protocol.api import APIS
from tests.conformance import harness
from tests.conformance.administration import CHANGES, NO_CHANGE, Change
from tests.conformance.harness import open_lab, settle


def all_changes(*, metadata_only: bool = False) -> pytest.MarkDecorator:
    chosen = [one for one in CHANGES if one.is_metadata or not metadata_only]
    return pytest.mark.parametrize("change", chosen, ids=[one.name for one in chosen])


async def change_and_fail(change: Change, flush: str, failure: str) -> None:
    """The failure happens right after the answer."""
    if change.store not in (None, harness.share_state_store):
        pytest.skip("the change does not concern this store")
    async with open_lab(log__flush=flush, transaction__partition__verification__enable="false") as lab:
        await change.before(lab)
        assert await change.look(lab) != change.after
        await change.ask(lab)
        await getattr(lab, failure)()
        await settle()
        assert await change.look(lab) == change.after


@all_changes()
async def test_an_answered_change_survives_a_kill(change: Change) -> None:
    await change_and_fail(change, "interval", "crash")


@all_changes()
async def test_with_flush_always_it_survives_a_loss_of_power(change: Change) -> None:
    await change_and_fail(change, "always", "lose_power")


@all_changes(metadata_only=True)
async def test_a_change_of_the_metadata_survives_a_loss_of_power_under_every_policy(change: Change) -> None:
    await change_and_fail(change, "never", "lose_power")


def test_there_is_a_case_for_every_api() -> None:
    """A new API belongs in `CHANGES`, or in `NO_CHANGE` with a reason, and in docs/durability.md."""
    changing = {change.api for change in CHANGES}
    unchanging = [name for names in NO_CHANGE.values() for name in names]
    assert len(unchanging) == len(set(unchanging))
    assert changing.isdisjoint(unchanging)
    assert changing.union(unchanging) == {spec.name for spec in APIS.values()}
