"""DescribeShareGroupOffsets' handler: logs that must be opened. The rules are in tests/conformance."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.conformance.conftest import Stage, make_stage
from tests.conformance.harness import open_lab
from tests.conformance.share_member import GROUP


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with open_lab() as lab:
        stage = await make_stage(lab)
        await stage.produce(3)
        await stage.member().take()
        yield stage


async def test_a_restarted_broker_opens_the_log(stage: Stage) -> None:
    await stage.lab.restart()
    assert await stage.offsets() == (0, 3)


async def test_the_leader_epoch_is_that_of_the_log(stage: Stage) -> None:
    await stage.lab.restart()
    response = await stage.lab.admin.ask(
        "describe_share_group_offsets", groups=[{"group_id": GROUP, "topics": None}]
    )
    assert response.groups[0].topics[0].partitions[0].leader_epoch == 1


async def test_a_log_that_cannot_be_opened_is_the_error_of_its_partition(stage: Stage) -> None:
    with stage.lab.broken_disk("t-0"), pytest.raises(AssertionError):
        await stage.produce(1)
    response = await stage.lab.admin.ask(
        "describe_share_group_offsets", groups=[{"group_id": GROUP, "topics": None}]
    )
    (partition,) = response.groups[0].topics[0].partitions
    assert partition.error_code is ErrorCode.kafka_storage_error
    assert (partition.start_offset, partition.lag) == (-1, -1)
