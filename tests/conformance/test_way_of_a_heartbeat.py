"""The way of a consumer group's heartbeat through the folders, as CONTRIBUTING.md describes it."""

import pytest

from tests.conformance.described_way import CONTRIBUTING, described_steps, watched
from tests.conformance.harness import open_lab
from tests.conformance.test_consumer_groups import NO_INTERVAL, join, partitions

pytestmark = pytest.mark.interpreted


async def test_a_heartbeat_goes_the_way_that_is_described() -> None:
    described = described_steps(CONTRIBUTING, "The way of a heartbeat")
    async with open_lab(**NO_INTERVAL) as lab:
        topic_id = await lab.create_topic("t", 4)
        await join(lab.client(), "a")  # the first one also loads modules
        with watched(described) as way:
            joined = await join(lab.client(), "b")
        assert joined.member_epoch == 3
        assert partitions(joined) == {}
        assert partitions(await join(lab.client(), "a")) == {topic_id: [0, 1]}
    assert way.steps == described
