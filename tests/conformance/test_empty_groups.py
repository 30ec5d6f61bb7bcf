"""`group.share.empty.retention.ms`: an unused group is deleted with its state; the records stay."""

from __future__ import annotations

from tests.conformance.conftest import make_stage
from tests.conformance.harness import Lab, open_lab

HOUR_MS = 3_600_000
KAFKAS_RETENTION_MS = 7 * 24 * HOUR_MS
"""The time after which Kafka forgets the offsets of empty groups of other kinds."""


async def groups(lab: Lab) -> list[str]:
    return [group.group_id for group in (await lab.admin.ask("list_groups")).groups]


async def test_a_group_that_stays_empty_is_deleted_with_its_state() -> None:
    async with open_lab(group__share__empty__retention__ms=str(HOUR_MS)) as lab:
        stage = await make_stage(lab)
        await stage.produce(3)
        member = stage.member()
        await member.take()
        await member.accept(0, 2)
        await member.heartbeat(-1)
        await lab.advance(HOUR_MS - 1)
        assert await groups(lab) == ["group"]
        await lab.advance(2 * 60_000)
        assert await groups(lab) == []
        await stage.member().join("t")
        assert sum(last - first + 1 for first, last, _ in await stage.member().take()) == 3


async def test_the_time_counts_anew_from_the_start_of_the_broker() -> None:
    async with open_lab(group__share__empty__retention__ms=str(HOUR_MS)) as lab:
        stage = await make_stage(lab)
        await stage.member().heartbeat(-1)
        await lab.advance(HOUR_MS - 60_000)
        await lab.crash()
        await lab.advance(HOUR_MS - 60_000)
        assert await groups(lab) == ["group"]
        await lab.advance(3 * 60_000)
        assert await groups(lab) == []


async def test_empty_groups_stay_unless_the_setting_is_set() -> None:
    async with open_lab() as lab:
        stage = await make_stage(lab)
        await stage.member().heartbeat(-1)
        await lab.advance(KAFKAS_RETENTION_MS + HOUR_MS)
        assert await groups(lab) == ["group"]
